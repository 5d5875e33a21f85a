"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const names = data.questions.map((question) => question.name);
  const store = "rag-sourcebias:" + data.sheet + ":" + data.annotator;
  let state = { place: 0, answers: {} };
  let kept = true;
  let unsent = false;

  const warn = (text) => { at("warning").textContent = text; at("warning").hidden = false; };

  const load = () => {
    try {
      const found = JSON.parse(localStorage.getItem(store) || "null");
      if (found && typeof found.answers === "object" && found.answers !== null) {
        state.answers = found.answers;
        state.place = Math.min(Math.max(found.place | 0, 0), data.items.length - 1);
      }
    } catch (error) {
      lost();
    }
  };
  const lost = () => {
    kept = false;
    warn("This browser does not keep your progress. Download your answers before you close the page.");
  };
  const keep = () => {
    if (!kept) return;
    try { localStorage.setItem(store, JSON.stringify(state)); } catch (error) { lost(); }
  };

  const given = (item) => state.answers[item.row_id] || {};
  const complete = (item) => names.every((name) => name in given(item));
  const make = (tag, text) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    return node;
  };

  const showTexts = (item) => {
    at("query").hidden = !item.query;
    at("query").querySelector("p").textContent = item.query;
    const parts = [["Text A", item.text_a], ["Text B", item.text_b]];
    at("texts").replaceChildren(...parts.map(([title, text]) => {
      const box = make("div");
      const body = make("p", text);
      body.dir = "auto";
      box.append(make("h3", title), body);
      return box;
    }));
  };

  const showQuestions = (item) => {
    at("questions").replaceChildren(...data.questions.map((question, number) => {
      const group = make("fieldset");
      group.dataset.question = number;
      group.append(make("legend", question.text));
      const row = make("div");
      row.className = "answers";
      question.answers.forEach((answer, index) => {
        const label = make("label");
        const input = make("input");
        input.type = "radio";
        input.name = question.name;
        input.value = answer;
        input.checked = given(item)[question.name] === answer;
        input.addEventListener("change", () => choose(number, index));
        label.append(input, make("kbd", String(index + 1)), make("span", question.labels[index]));
        label.querySelector("kbd").setAttribute("aria-hidden", "true");
        row.append(label);
      });
      group.append(row);
      return group;
    }));
  };

  // The question number keys answer: the one that has the focus, else the first unanswered one.
  const current = () => {
    const focused = document.activeElement && document.activeElement.closest("fieldset");
    if (focused) return Number(focused.dataset.question);
    const answers = given(data.items[state.place]);
    const open = names.findIndex((name) => !(name in answers));
    return open < 0 ? names.length - 1 : open;
  };
  const mark = () => {
    const now = current();
    document.querySelectorAll("fieldset").forEach((group, number) => {
      group.classList.toggle("current", number === now);
    });
  };

  const count = () => {
    const done = data.items.filter(complete).length;
    at("bar").max = data.items.length;
    at("bar").value = done;
    at("count").textContent = done + " of " + data.items.length + " answered";
    at("save").classList.toggle("ready", done === data.items.length);
    at("open").disabled = done === data.items.length;
    [...at("all").children].forEach((entry, place) => {
      const button = entry.firstChild;
      const finished = complete(data.items[place]);
      button.classList.toggle("done", finished);
      button.setAttribute("aria-label", "Item " + (place + 1) + (finished ? ", answered" : ""));
      if (place === state.place) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
  };

  const draw = () => {
    const place = state.place;
    const item = data.items[place];
    at("place").textContent = "Item " + (place + 1) + " of " + data.items.length;
    at("previous").disabled = place === 0;
    at("next").disabled = place === data.items.length - 1;
    showTexts(item);
    showQuestions(item);
    count();
    mark();
  };
  const show = (place, focus) => {
    state.place = place;
    keep();
    draw();
    if (focus) { at("item").focus({ preventScroll: true }); window.scrollTo(0, 0); }
  };

  const choose = (number, index) => {
    const item = data.items[state.place];
    const question = data.questions[number];
    state.answers[item.row_id] = { ...given(item), [question.name]: question.answers[index] };
    unsent = true;
    keep();
    count();
    mark();
  };
  const step = (by) => {
    const place = state.place + by;
    if (place >= 0 && place < data.items.length) show(place, true);
  };
  const open = () => {
    const n = data.items.length;
    for (let by = 1; by <= n; by += 1) {
      const place = (state.place + by) % n;
      if (!complete(data.items[place])) { show(place, true); return; }
    }
  };

  // As the CSV sheet, without its texts: what is read back are row ids and answers.
  const cell = (text) => '"' + text.replaceAll('"', '""') + '"';
  const exported = () => {
    const rows = data.items.map((item) =>
      [item.row_id, ...names.map((name) => given(item)[name] || "")]);
    return [["row_id", ...names], ...rows].map((row) => row.map(cell).join(",") + "\r\n").join("");
  };
  const save = () => {
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([exported()], { type: "text/csv" }));
    link.download = data.annotator + "-answers.csv";
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    unsent = false;
  };

  const key = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target.closest ? event.target.closest("button, summary, a") : null;
    const digit = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
    const question = current();
    if (digit >= 0 && digit < data.questions[question].answers.length) {
      const group = document.querySelectorAll("fieldset")[question];
      group.querySelectorAll("input")[digit].checked = true;
      // the next digit belongs to the next question
      if (document.activeElement !== document.body) at("item").focus({ preventScroll: true });
      choose(question, digit);
    } else if (event.key === "n" || (event.key === "Enter" && !on)) step(1);
    else if (event.key === "p") step(-1);
    else if (event.key === "u") open();
    else if (event.key === "Backspace") {
      delete state.answers[data.items[state.place].row_id];
      show(state.place, true);
    } else return;
    event.preventDefault();
  };

  if (!data.items.length) { warn("There are no items on this sheet."); return; }
  at("who").textContent = data.annotator;
  at("all").append(...data.items.map((item, place) => {
    const entry = make("li");
    const button = make("button", String(place + 1));
    button.type = "button";
    button.addEventListener("click", () => show(place, true));
    entry.append(button);
    return entry;
  }));
  at("previous").addEventListener("click", () => step(-1));
  at("next").addEventListener("click", () => step(1));
  at("open").addEventListener("click", open);
  at("save").addEventListener("click", save);
  at("questions").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", key);
  document.addEventListener("focusin", mark);
  // The page open twice: the other window's answers are ours too. Nothing is written here, or two
  // windows would undo each other's latest answers.
  window.addEventListener("storage", (event) => {
    if (event.key !== store || !event.newValue) return;
    const place = state.place;
    load();
    state.place = place;
    draw();
  });
  window.addEventListener("beforeunload", (event) => {
    if (!kept && unsent) event.preventDefault();
  });
  load();
  show(state.place, false);
})();
