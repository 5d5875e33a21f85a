// Whether the page is up to date, and what to do when it is not.

import { byId, h, redraw } from "./dom.js";
import { duration, time } from "./format.js";

let since = null;
let latest = null;

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;

function lamp(mood, text) {
  byId("live").className = `live ${mood}`;
  // Said anew only when it changes: readers of the screen hear every change.
  if (byId("live-text").textContent !== text) byId("live-text").textContent = text;
}

function trouble(...lines) {
  const box = byId("trouble");
  box.hidden = !lines.length;
  redraw(box, lines.map((line) => h("p", {}, line)));
}

export function connected(overview) {
  const { follower } = overview;
  since = null;
  latest = overview.generated_at;
  document.body.classList.remove("stale");
  byId("live").title = `Updated ${time(latest)}`;
  if (!overview.log.n_written) {
    lamp("wait", "Waiting for retrievals");
    trouble();
    return;
  }
  if (follower.error !== null) {
    lamp("bad", "Follower stopped");
    trouble(h("strong", {}, "Alarms do not move now."), sentence(follower.error));
    return;
  }
  lamp("good", "Live");
  trouble();
}

export function lost(error, wait) {
  if (document.body.classList.contains("waiting")) byId("headline").textContent = "No numbers yet.";
  since ??= Date.now() / 1000;
  document.body.classList.add("stale");
  if (error.status === undefined) {
    console.error(error);
    lamp("bad", "Not live");
    trouble(h("strong", {}, "This page made a mistake; its numbers may be old."), error.message);
    return;
  }
  if (error.status === 401) {
    lamp("bad", "Token needed");
    trouble(h("strong", {}, "This page needs its token."),
      "Open it once with ?token=… behind the address, with the token that “rag-sourcebias monitor serve” was started with; the browser then keeps it in a cookie.");
    return;
  }
  const old = latest === null ? "" : ` The numbers are from ${time(latest)}.`;
  const kind = error.status === 0 ? `Connection lost since ${time(since)}.` : "The server cannot answer.";
  lamp("bad", error.status === 0 ? "Connection lost" : "Not live");
  trouble(h("strong", {}, kind), `${error.status === 0 ? "" : sentence(error.message)}${old} Next try in ${duration(wait / 1000)}.`.trim());
}
