//! Compresses the files that the server sends as they are: programs that contain it are smaller.

use std::{
    env,
    error::Error,
    fs::{self, File},
    path::Path,
};

use flate2::{Compression, write::GzEncoder};

/// The document of the endpoints, and the page's files.
const FILES: [&str; 5] = [
    "openapi.json",
    "page/page/page.js",
    "page/page/page.css",
    "page/page/icon.svg",
    "page/page/licences.md",
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var("OUT_DIR")?;
    for path in FILES {
        println!("cargo::rerun-if-changed={path}");
        let name = Path::new(path).file_name().ok_or(path)?.to_string_lossy();
        let file = File::create(Path::new(&out).join(format!("{name}.gz")))?;
        let mut encoder = GzEncoder::new(file, Compression::best());
        std::io::Write::write_all(&mut encoder, &fs::read(path)?)?;
        encoder.finish()?;
    }
    Ok(())
}
