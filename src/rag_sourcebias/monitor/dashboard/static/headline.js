// The state in one sentence.

import { count, interval, percent, plural, short, time } from "./format.js";
import { chosen, pairsOf, whereOf } from "./labels.js";
import { titleOf } from "./palette.js";

const WHAT = { exposure: "the exposure", first: "the first ranks" };
const MOST_TOLD = 2;
const PAGES = ["shift", "new", "gone", "untagged"];

const title = (by, group) =>
  group === "" ? "untagged documents" : by === "style" ? `documents of style ${titleOf(group)}` : `${titleOf(group)} documents`;
const capital = (text) => (/^llm:/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1));

/** "In collection docs, human documents hold 47.5 % of the exposure over 12 retrievals; baseline 50 %." */
function told(snapshot, shares, alone) {
  const where = alone ? "" : `${pairsOf(snapshot.labels).length ? "in " : ""}${whereOf(snapshot.labels, false)}, `;
  const said = shares.map((share, i) => {
    const of = i && share.measure === shares[i - 1].measure ? "" : ` of ${WHAT[share.measure]}`;
    return `${title(snapshot.by, share.group)}${i ? "" : " hold"} ${percent(share.share)}${of}`;
  });
  const levels = shares.map((share) => share.baseline).filter((level) => level !== null);
  const same = new Set(levels.map(short)).size === 1;
  const against = levels.length ? `; baseline ${(same ? levels.slice(0, 1) : levels).map(short).join(" and ")}` : "";
  const level = snapshot.watch?.n_level ?? null; // after a change not all
  const over = level === null ? plural(snapshot.n_retrievals, "retrieval") : `the ${plural(level, "retrieval")} at this level`;
  return `${capital(where + said.join(", "))} over ${over}${against}.`;
}

const CAUSE = { index: "what the store holds", asked: "what is asked", ranking: "ranking" };
const points = (x) => `${x < 0 ? "−" : "+"}${Math.abs(100 * x).toFixed(1)}`;

/** The level of what an alarm is about, since its shift. */
const levelOf = (alarm, snapshots) => snapshots.find((one) => same(one.labels, alarm.labels)).groups
  .find((share) => share.group === alarm.group && share.measure === alarm.measure) ?? alarm;
const apart = (alarm, snapshots) => {
  const now = levelOf(alarm, snapshots);
  return now.upper < alarm.baseline || now.lower > alarm.baseline;
};

/** "Human documents went down from 50.2 % to 34.1 % [31.0, 37.2] of the exposure since 12 Oct 14:00." */
function shifted(alarm, snapshots, alone) {
  const now = levelOf(alarm, snapshots);
  const where = alone ? "" : `${pairsOf(alarm.labels).length ? "In " : ""}${whereOf(alarm.labels, false)}, `;
  const what = where ? title(alarm.by, alarm.group) : capital(title(alarm.by, alarm.group));
  const way = now.share < alarm.baseline ? "down" : "up";
  const cause = alarm.rule === "composition" ? " with what the store holds" : "";
  if (alarm.rule === "level") return `${where}${what} hold ${percent(now.share)} ${interval(now.lower, now.upper)} of ${WHAT[alarm.measure]}; their known share is ${percent(alarm.baseline)}.`;
  if (!apart(alarm, snapshots)) return `${where}${what} left their ${percent(alarm.baseline)} of ${WHAT[alarm.measure]} at ${time(alarm.since, "minute")}; on average since then they hold ${percent(now.share)} ${interval(now.lower, now.upper)}, which may be as before.`;
  return `${where}${what} went ${way}${cause} from ${percent(alarm.baseline)} to ${percent(now.share)} ${interval(now.lower, now.upper)} of ${WHAT[alarm.measure]} since ${time(alarm.since, "minute")}.`;
}

function because(alarm) {
  const unknown = alarm.parts.some((part) => part.of === "index") ? CAUSE : { ...CAUSE, ranking: "ranking or what the store holds" };
  const parts = alarm.parts.length > 1 ? `Points by cause: ${alarm.parts.map((part) => `${unknown[part.of]} ${points(part.change)} [${points(part.lower)}, ${points(part.upper)}]`).join(", ")}. ` : "";
  return `${parts}Next: ${alarm.next_step}. `;
}

/** What is missing before shares can say anything; null where nothing is. */
function missing(overview) {
  const groups = overview.monitor.snapshots.flatMap((one) => one.groups.filter((share) => share.share > 0));
  if (groups.length && groups.every((share) => share.group === "")) {
    return `No document had a ${overview.monitor.by}: tag them (rag-sourcebias tag --help), or give instrument(…, tags=…).`;
  }
  const unseen = [...new Set(overview.monitor.snapshots.flatMap((one) => one.unseen ?? []))];
  return unseen.length ? `The baseline names ${unseen.join(", ")}, of which no document came.` : null;
}

/** The group a reader asks about first: the one that is tested and furthest from its baseline. */
function foremost(shares) {
  const named = shares.filter((share) => share.group !== "" && share.share !== null);
  const human = named.find((share) => share.group === "human");
  const far = (share) => (share.baseline === null ? -1 : Math.abs(share.share - share.baseline));
  return human ?? named.sort((a, b) => far(b) - far(a) || b.share - a.share)[0];
}

/** Mood, sentence and detail. */
export function headline(overview, view) {
  const all = overview.monitor.snapshots;
  const snapshots = chosen(all, view.labels);
  const pairs = snapshots.flatMap((one) => one.groups.map((share) => [one, share]));
  const alarms = pairs.filter(([, share]) => share.alarm);
  // Of one group the exposure says it all; first ranks are told where they alone raise an alarm.
  const first = alarms.filter(([one, share]) => share.measure === "exposure"
    || !alarms.some(([other, its]) => other === one && its.group === share.group && its.measure === "exposure"));
  const alone = all.length <= 1;
  if (!overview.log.n_written) {
    return { mood: "wait", text: "No retrieval was logged yet.", detail: `Point your application's EventLog at ${overview.log.name}; this page fills itself as soon as events arrive.` };
  }
  const lacking = missing(overview);
  const shifts = (overview.shifts ?? []).filter((alarm) => snapshots.some((one) => same(one.labels, alarm.labels)));
  if (shifts.length) {
    const pages = shifts.filter((alarm) => PAGES.includes(alarm.rule) && apart(alarm, snapshots));
    const leading = pages.length ? pages : shifts;
    const rest = shifts.length > MOST_TOLD ? ` And ${count(shifts.length - MOST_TOLD)} more, below.` : "";
    const start = pages.length > 1 ? `${count(pages.length)} alarms. ` : pages.length ? "Alarm. " : "";
    return {
      mood: pages.length ? "alarm" : "note",
      text: `${start}${leading.slice(0, MOST_TOLD).map((alarm) => shifted(alarm, snapshots, alone)).join(" ")}${rest}`,
      detail: `${because(leading[0])}${context(overview)}`,
    };
  }
  if (lacking) return { mood: "wait", text: lacking, detail: context(overview) };
  if (alarms.length) {
    const leading = first.slice(0, MOST_TOLD);
    const words = [...new Set(leading.map(([one]) => one))].map((one) =>
      told(one, leading.filter(([its]) => its === one).map(([, share]) => share), alone));
    const rest = first.length > MOST_TOLD ? ` And ${count(first.length - MOST_TOLD)} more, below.` : "";
    const start = alarms.length === 1 ? "Alarm." : `${count(alarms.length)} alarms.`;
    return { mood: "alarm", text: `${start} ${words.join(" ")}${rest}`, detail: context(overview) };
  }
  const tested = pairs.some(([, share]) => share.baseline !== null);
  const start = tested ? "No alarm." : "Nothing is tested yet.";
  const elsewhere = overview.alarms_active && snapshots.length < all.length
    ? ` But ${plural(overview.alarms_active, "alarm")} elsewhere: choose all labels.` : "";
  const one = [...snapshots].sort((a, b) => b.n_retrievals - a.n_retrievals)[0];
  const shares = one?.groups.filter((share) => share.measure === view.measure) ?? [];
  const share = foremost(shares.length ? shares : one?.groups ?? []);
  const text = share ? told(one, [share], alone) : `${plural(overview.log.n_written, "retrieval")} logged.`;
  const calm = overview.follower.error === null && tested ? "ok" : "wait";
  return { mood: elsewhere ? "alarm" : calm, text: `${start} ${text}${elsewhere}`, detail: context(overview) };
}

const same = (one, other) => pairsOf(one).sort().join() === pairsOf(other).sort().join();

function context(overview) {
  const { baseline } = overview.monitor;
  if (!overview.monitor.snapshots.length) return "The monitor has read none of them yet.";
  const { watch } = overview.monitor.snapshots[0];
  return `Baseline: ${baseline.replace(/^no baseline$/, "none, so that shares are shown and not tested")}. `
    + (watch ? `${watch.left_to_learn ? `What is usual is learnt over two weeks: ${plural(watch.left_to_learn, "half-day")} to go` : "A change is told after half a day at the soonest"}.` : "");
}
