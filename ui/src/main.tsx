// Starts the page: for a record that is in the document, or for the server that it comes from.
import { render } from "preact";
import { embedded } from "./document";
import { RecordedSession } from "./record";
import { takeToken } from "./token";
import { Page, Recorded } from "./view/page";
import "./page.css";

// This script is in the folder `page`, so that the page works below any path.
const SCRIPT = import.meta.url;

const page = document.getElementById("page")!;
const record = embedded();
if (record) {
  render(<Recorded session={new RecordedSession(record)} />, page);
} else {
  takeToken();
  render(<Page base={new URL("../", SCRIPT)} />, page);
}
