// Numbers and times in words. Thin spaces before units; "–" where there is no number.

const THIN = "\u202f";
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const TIMES = {
  day: new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" }),
  minute: new Intl.DateTimeFormat("en-GB", clock),
  second: new Intl.DateTimeFormat("en-GB", { ...clock, second: "2-digit" }),
};

export const known = (value) => typeof value === "number" && Number.isFinite(value);

export const count = (n) => (known(n) ? whole.format(n) : "–");

export const percent = (share, digits = 1) =>
  known(share) ? `${(share * 100).toFixed(digits)}${THIN}%` : "–";

/** A baseline or level: without a needless ".0". */
export const short = (share) =>
  known(share) ? `${Number((share * 100).toFixed(1))}${THIN}%` : "–";

export const interval = (lower, upper) =>
  known(lower) && known(upper) ? `[${(lower * 100).toFixed(1)}, ${(upper * 100).toFixed(1)}]` : "";

export const delta = (value, digits = 1) => {
  if (!known(value)) return "–";
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return (value > 0 ? "+" : "−") + text;
};

export function bytes(n) {
  if (!known(n)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  for (; n >= 1000 && i < units.length - 1; i += 1) n /= 1000;
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)}${THIN}${units[i]}`;
}

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

export const utc = (at) => {
  const date = new Date(at * 1000);
  return Number.isNaN(date.getTime()) ? "–" : `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
};

/** Local time: with the date unless that is today. */
export function time(at, unit = "second") {
  if (!known(at)) return "–";
  const date = new Date(at * 1000);
  if (Number.isNaN(date.getTime())) return "–";
  const today = date.toDateString() === new Date().toDateString();
  const parts = today && unit !== "day" ? [] : [TIMES.day.format(date)];
  if (date.getFullYear() !== new Date().getFullYear()) parts.push(date.getFullYear());
  if (unit !== "day") parts.push(TIMES[unit].format(date));
  return parts.join(" ");
}

/** Start and end of a step: the date once. */
export function span(start, seconds) {
  if (seconds === 86400 && start % 86400 === 0) return `${utc(start).slice(0, 10)} (UTC)`;
  if (seconds >= 86400) return `${time(start, "minute")} – ${time(start + seconds, "minute")}`;
  return `${time(start, "minute")} – ${TIMES.minute.format(new Date((start + seconds) * 1000))}`;
}

export function duration(seconds) {
  if (seconds < 1) return `less than 1${THIN}s`;
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= 2 * size) return `${Math.round(seconds / size)}${THIN}${unit}`;
  }
  return `${Math.round(seconds)}${THIN}s`;
}

/** Ticks of a time axis: the date under the first tick and where it changes. */
export function ticks(splits, step) {
  let last = "";
  return splits.map((at) => {
    const date = new Date(at * 1000);
    const day = TIMES.day.format(date);
    if (step >= 86400) return day;
    const text = TIMES.minute.format(date) + (day === last ? "" : `\n${day}`);
    last = day;
    return text;
  });
}
