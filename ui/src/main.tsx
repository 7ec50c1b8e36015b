// Starts the page.
import { render } from "preact";
import { takeToken } from "./route";
import { Page } from "./view/page";
import "./page.css";

takeToken();
render(<Page />, document.getElementById("page")!);
