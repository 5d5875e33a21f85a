// Retrievals as rows of coloured squares, best rank first.

import { h } from "./dom.js";
import { count, time, utc } from "./format.js";
import { pairsOf } from "./labels.js";
import { mark } from "./legend.js";
import { titleOf } from "./palette.js";

const MOST_SQUARES = 40;
const groupOf = (document, by) => document[by] ?? "";

function describe(document, by) {
  const tags = [titleOf(groupOf(document, by))];
  const other = by === "source" ? document.style : document.source;
  if (other !== null) tags.push(by === "source" ? `style ${other}` : other);
  if (document.doc_id !== null) tags.push(document.doc_id);
  return `rank ${document.rank}: ${tags.join(", ")}`;
}

function squares(documents, by) {
  if (!documents.length) return h("span", { class: "muted" }, "nothing found");
  const drawn = documents.slice(0, MOST_SQUARES);
  const more = documents.length - drawn.length;
  return h("span", { class: "squares", role: "img", "aria-label": drawn.map((one) => describe(one, by)).join("; ") },
    drawn.map((one) => mark(by, groupOf(one, by), describe(one, by))),
    more > 0 ? h("span", { class: "small" }, ` +${count(more)}`) : null);
}

function ids(one) {
  const recorded = one.documents.filter((document) => document.doc_id !== null);
  if (!recorded.length) return null;
  return h("details", { "data-key": `ids:${one.number}` }, h("summary", {}, "ids"),
    h("ol", {}, recorded.slice(0, 200).map((document) => h("li", { value: document.rank }, document.doc_id))));
}

export function drawRetrievals(rows, view, more) {
  if (!rows.length && more) return h("p", { class: "nothing" }, "None among the newest; older ones may fit.");
  if (!rows.length) {
    return h("p", { class: "nothing" }, "None that is still kept: older retrievals go when the log reaches its limits, their counts stay.");
  }
  const hasIds = rows.some((one) => one.documents.some((document) => document.doc_id !== null));
  const groups = [...new Set(rows.flatMap((one) => one.documents.map((document) => groupOf(document, view.by))))].sort();
  const key = groups.slice(0, 16).map((group) => h("span", { class: "key" }, mark(view.by, group), ` ${titleOf(group)}`));
  const names = ["Time", "Query", "Ranks, best first", ...(hasIds ? ["Documents"] : []), "Labels"];
  return h("div", {}, h("p", { class: "keys" }, key), h("div", { class: "scroll tall" }, h("table", { class: "lined" },
    h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map((one) => h("tr", {},
      h("td", { title: utc(one.at), class: "when" }, time(one.at)),
      h("td", { class: "id" }, one.query_id || h("span", { class: "muted" }, "not recorded")),
      h("td", {}, squares(one.documents, view.by)),
      hasIds ? h("td", {}, ids(one)) : null,
      h("td", { class: "labels" }, pairsOf(one.labels).join(", "))))))));
}
