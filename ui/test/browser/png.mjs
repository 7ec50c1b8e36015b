// Pictures of the page as small files: PNG with a palette of the most frequent colours that are not
// almost the same.
import zlib from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** Colours that differ less in each channel become one: the edges of letters have hundreds. */
const NEAR = 5;
/** Bytes a pixel, by the kind of colour: RGB, a palette, RGB with transparency. */
const BYTES = { 2: 3, 3: 1, 6: 4 };

/** Reads a picture with eight bits a channel: its size, and a number `0xrrggbb` for each pixel. */
export function decode(png) {
  const chunks = [...chunksOf(png)];
  const content = (name) => Buffer.concat(chunks.filter((chunk) => chunk.name === name).map(({ data }) => data));
  const head = content("IHDR");
  const [width, height, depth, kind] = [head.readUInt32BE(0), head.readUInt32BE(4), head[8], head[9]];
  const size = BYTES[kind];
  if (depth !== 8 || !size || head[12] !== 0) throw new Error("this kind of PNG is not read");
  const raw = unfiltered(zlib.inflateSync(content("IDAT")), width * size, height, size);
  const palette = content("PLTE");
  const pixels = new Uint32Array(width * height);
  for (let n = 0; n < pixels.length; n += 1) {
    const [bytes, at] = kind === 3 ? [palette, raw[n] * 3] : [raw, n * size];
    pixels[n] = (bytes[at] << 16) | (bytes[at + 1] << 8) | bytes[at + 2];
  }
  return { width, height, pixels };
}

function* chunksOf(png) {
  for (let at = SIGNATURE.length; at < png.length; at += png.readUInt32BE(at) + 12) {
    yield { name: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + png.readUInt32BE(at)) };
  }
}

/** Each line begins with its filter: what its bytes are the difference to. */
function unfiltered(data, length, height, size) {
  const raw = Buffer.alloc(length * height);
  for (let y = 0; y < height; y += 1) {
    const filter = data[y * (length + 1)];
    for (let x = 0; x < length; x += 1) {
      const at = y * length + x;
      const left = x >= size ? raw[at - size] : 0;
      const above = y > 0 ? raw[at - length] : 0;
      const corner = x >= size && y > 0 ? raw[at - length - size] : 0;
      raw[at] = data[at + y + 1] + [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter];
    }
  }
  return raw;
}

function paeth(left, above, corner) {
  const [a, b, c] = [left, above, corner].map((value) => Math.abs(left + above - corner - value));
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

/** Writes a picture with a palette; each colour becomes the nearest of it. */
export function encode({ width, height, pixels }) {
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const colours = [];
  for (const [colour] of [...counts].sort(([, a], [, b]) => b - a)) {
    if (colours.length < 256 && colours.every((one) => distance(one, colour) > NEAR)) colours.push(colour);
  }
  const places = new Map([...counts.keys()].map((colour) => [colour, nearest(colours, colour)]));
  const raw = Buffer.alloc((width + 1) * height);
  pixels.forEach((pixel, n) => (raw[n + Math.floor(n / width) + 1] = places.get(pixel)));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3], 8);
  const palette = Buffer.from(colours.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([SIGNATURE, chunk("IHDR", head), chunk("PLTE", palette), chunk("IDAT", zlib.deflateSync(raw, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

/** The greatest difference of two colours in one channel. */
const distance = (a, b) => Math.max(...[16, 8, 0].map((shift) => Math.abs(((a >> shift) & 255) - ((b >> shift) & 255))));

function nearest(colours, colour) {
  const distances = colours.map((one) => distance(one, colour));
  return distances.indexOf(Math.min(...distances));
}

function chunk(name, data) {
  const named = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(zlib.crc32(named));
  return Buffer.concat([length, named, sum]);
}

/** The part of the pixels of two pictures that differ in a channel by more than `most` of 255. */
export function differing(a, b, most) {
  if (a.width !== b.width || a.height !== b.height) return 1;
  const count = a.pixels.reduce((sum, pixel, n) => (pixel !== b.pixels[n] && distance(pixel, b.pixels[n]) > most ? sum + 1 : sum), 0);
  return count / a.pixels.length;
}
