"use strict";
(() => {
  const number = (text) => {
    const found = text.replace(/\u2212/g, "-").replace(/,(?=\d{3})/g, "").match(/^[^\d-]*(-?\d+(?:\.\d+)?)/);
    return found ? parseFloat(found[1]) : NaN;
  };
  const words = (cell) => cell.textContent.trim().replace(/\s+/g, " ");
  const element = (name, attributes, text) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  };
  const copy = async (text, button) => {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = element("textarea", { "aria-hidden": "true", style: "position:fixed;opacity:0" });
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    const before = button.textContent;
    button.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = before; button.focus(); }, 1200);
  };

  // The rows of a table as CSV: the name of a group stands in a column of its own.
  const csv = (table) => {
    const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
    const plain = (text) => quoted(text.replace(/^\u2212(?=\d)/, "-").replace(/^(\d{1,3}(?:,\d{3})+)$/, (n) => n.replace(/,/g, "")));
    const skip = new Set([...table.tHead.rows[0].cells].flatMap((c, i) => (c.dataset.bar === "" ? [i] : [])));
    const line = (row) => [...row.cells].filter((_, i) => !skip.has(i)).map((cell) => plain(cell.dataset.head ?? words(cell)));
    const grouped = table.querySelector("tr.group") !== null;
    const lines = [[...(grouped ? ["group"] : []), ...line(table.tHead.rows[0])]];
    for (const body of table.tBodies) {
      let group = "";
      for (const row of body.rows) {
        if (row.classList.contains("group")) group = plain(words(row));
        else if (!row.hidden) lines.push([...(grouped ? [group] : []), ...line(row)]);
      }
    }
    return lines.map((cells) => cells.join(",")).join("\r\n") + "\r\n";
  };

  const sort = (table, at, down) => {
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
      const key = (row) => words(row.cells[at] ?? row.cells[0]);
      rows.sort((a, b) => {
        const [x, y] = [number(key(a)), number(key(b))];
        if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
        const order = Number.isNaN(x) ? key(a).localeCompare(key(b), undefined, { numeric: true }) : x - y;
        return down ? -order : order;
      });
      body.append(...rows);
    }
  };

  const filter = (table, wanted, told) => {
    const text = wanted.trim().toLowerCase();
    let shown = 0;
    let all = 0;
    for (const body of table.tBodies) {
      const group = body.querySelector("tr.group");
      const inGroup = group !== null && words(group).toLowerCase().includes(text);
      let left = 0;
      for (const row of body.rows) {
        if (row === group) continue;
        all += 1;
        row.hidden = !(inGroup || words(row).toLowerCase().includes(text));
        left += row.hidden ? 0 : 1;
      }
      if (group) group.hidden = left === 0;
      shown += left;
    }
    told.textContent = text ? `${shown} of ${all} rows` : "";
  };

  for (const table of document.querySelectorAll(".scroll > table")) {
    const box = table.parentElement;
    const name = box.getAttribute("aria-label");
    const rows = table.querySelectorAll("tbody tr:not(.group)").length;
    const bar = element("div", { class: "tools" });
    if (rows > 8) {
      const input = element("input", { type: "search", placeholder: "Filter rows", "aria-label": `Filter rows of: ${name}` });
      const told = element("span", { class: "muted", role: "status" });
      input.addEventListener("input", () => filter(table, input.value, told));
      bar.append(input, told);
    }
    const button = element("button", { type: "button", "aria-label": `Copy as CSV: ${name}` }, "Copy as CSV");
    button.addEventListener("click", () => copy(csv(table), button));
    bar.append(button);
    box.before(bar);
    if (rows < 2) continue;
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const text = words(head);
      if (!text || head.dataset.bar === "") return;
      head.dataset.head = text;
      const press = element("button", { type: "button", class: "sort" }, text);
      head.replaceChildren(press);
      press.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sort(table, at, down);
      });
    });
  }

  for (const code of document.querySelectorAll(".rsb-next code")) {
    const button = element("button", { type: "button", "aria-label": `Copy the command ${words(code)}` }, "Copy");
    button.addEventListener("click", () => copy(words(code), button));
    code.after(" ", button);
  }

  const open = () => {
    const at = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!at) return;
    for (let box = at; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
    at.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => {
    for (const box of document.querySelectorAll("details:not([open])")) { box.open = true; box.dataset.printed = ""; }
  });
  addEventListener("afterprint", () => {
    for (const box of document.querySelectorAll("details[data-printed]")) { box.open = false; delete box.dataset.printed; }
  });
})();
