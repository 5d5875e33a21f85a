// Alarms that are on, and those there were.

import { h, redraw } from "./dom.js";
import { count, time, utc } from "./format.js";
import { whereOf } from "./labels.js";
import { mark } from "./legend.js";
import { titleOf } from "./palette.js";

const RULES = { shift: "shifted", new: "new", gone: "gone", untagged: "untagged documents", level: "not at its known share", composition: "shifted with the store", resolved: "back at its baseline" };
const LASTING = ["shift", "new", "gone", "untagged", "level", "composition"];
const MEASURES = { exposure: "exposure", first: "first ranks" };
const keyOf = (labels, group, measure) => JSON.stringify([Object.entries(labels).sort(), group, measure]);

export function drawAlarms(box, overview, answer) {
  const active = new Set(overview.monitor.snapshots.flatMap((one) =>
    one.groups.filter((share) => share.alarm).map((share) => keyOf(one.labels, share.group, share.measure))));
  const alarms = answer?.alarms ?? [];
  if (!alarms.length) {
    redraw(box, h("p", { class: "nothing" }, active.size
      ? `${count(active.size)} active; when they were raised is not recorded.`
      : "None so far."));
    return;
  }
  const rows = alarms.map((alarm) => {
    const on = LASTING.includes(alarm.rule) && active.has(keyOf(alarm.labels, alarm.group, alarm.measure));
    return h("tr", { class: on ? "alarmed" : null },
      h("td", { class: "when" }, h("time", { datetime: new Date(alarm.at * 1000).toISOString(), title: utc(alarm.at) }, time(alarm.at))),
      h("td", {}, on ? h("span", { class: "badge" }, "active") : h("span", { class: "muted" }, "past")),
      h("td", {}, mark(alarm.by, alarm.group), ` ${titleOf(alarm.group)}`, h("br"), h("span", { class: "muted" }, MEASURES[alarm.measure] ?? alarm.measure)),
      h("td", {}, RULES[alarm.rule] ?? alarm.rule, h("br"), h("span", { class: "muted" }, whereOf(alarm.labels))),
      h("td", { class: "message" }, alarm.message));
  });
  const names = ["Time", "State", "Group", "Rule", "Message"];
  redraw(box, h("div", { class: "scroll" }, h("table", { class: "lined alarms" },
    h("caption", {}, h("div", {}, `Newest first${answer.n > alarms.length ? `: ${count(alarms.length)} of ${count(answer.n)}` : ""}. An alarm is active until the share is back at its baseline, or the monitor is reset.`)),
    h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows))));
}
