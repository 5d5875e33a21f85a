// Facts about the log and what was lost.

import { h, redraw } from "./dom.js";
import { bytes, count, plural, time, utc } from "./format.js";

const IDS = { none: "no document ids", hashed: "document ids as hashes", plain: "document ids as they are" };

const MOST_ODD = 10;

function lost(title, dropped) {
  const reasons = Object.entries(dropped ?? {}).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
  const total = reasons.reduce((sum, [, n]) => sum + n, 0);
  return [title, reasons.length
    ? [h("strong", { class: "bad" }, plural(total, "event")), h("ul", {}, reasons.map(([reason, n]) => h("li", {}, `${count(n)}: ${reason}`)))]
    : "none"];
}

/** What is not as it should be in labels and tags; nothing where all is well. */
function oddities(log, snapshots) {
  const rows = [];
  const add = (name, counts, unit) => {
    const items = Object.entries(counts ?? {}).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
    if (items.length) {
      rows.push([name, h("ul", {}, items.slice(0, MOST_ODD).map(([key, n]) => h("li", {}, `${key || "labels with ever new names"}: ${plural(n, unit)}`)))]);
    }
  };
  add("Labels with too many values, shown as “other”", log.overflowed, "retrieval");
  add("Sources that are neither human nor llm:<model>", log.odd_sources, "document");
  const odd = {};
  for (const one of snapshots) for (const [what, n] of Object.entries(one.odd ?? {})) odd[what] = (odd[what] ?? 0) + n;
  add("Clocks and repeats, counted all the same", odd, "retrieval");
  if (log.bad_tags) rows.push(["Tags that could not be read", `${count(log.bad_tags)}, taken as unknown`]);
  return rows;
}

export function drawFooter(box, overview) {
  const { log, follower } = overview;
  const kept = log.since === null ? [] : [" since ", h("span", { title: utc(log.since) }, time(log.since, "minute"))];
  const pairs = [
    ["Log", `${log.name}, ${bytes(log.size_bytes)}`],
    ["Retrievals", [`${count(log.n_written - log.n_later)}${log.n_later ? ` and ${count(log.n_later)} later stages` : ""} written, ${count(log.n_kept)} kept`, kept]],
    ["Follower", follower.error === null
      ? `${count(follower.n_read)} read, ${follower.behind ? `${count(follower.behind)} behind` : "up to date"}`
      : [h("strong", { class: log.n_written ? "bad" : null }, log.n_written ? "stopped: " : "waiting: "), follower.error]],
    lost("Lost by the application", log.dropped),
    lost("Lost by the follower", follower.dropped),
    ...oddities(log, overview.monitor.snapshots),
    ["Recorded", `No text is recorded: no query, no document; ${IDS[overview.document_ids] ?? "nothing yet"}.`],
  ];
  redraw(box,
    h("dl", { class: "facts" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    h("p", { class: "note" }, `rag-sourcebias ${overview.version}. `, h("a", { href: "metrics" }, "Metrics"), " for Prometheus. Times are local; point at one for UTC."));
}
