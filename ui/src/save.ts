// Saves text as a file of the browser's user.

/** Offers a file for download. */
export function save(name: string, pieces: string[], type: string): void {
  const url = URL.createObjectURL(new Blob(pieces, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** A file's name for a session; a session's id may contain slashes. */
export const fileName = (session: string, ending: string): string => `${session.replaceAll("/", "-")}${ending}`;
