// Times that go on, pages that pause, and keys. Everything works without it; this makes it quicker.
"use strict";
(() => {
  const base = document.body.dataset.base || "";
  const stream = document.getElementById("stream");
  const live = document.getElementById("live");
  const pause = document.getElementById("pause");
  const asOf = document.getElementById("as-of");
  const every = document.getElementById("every");
  const trouble = document.getElementById("trouble");
  // How far the server's clock is ahead of this one, from when the page was made.
  let ahead = asOf ? Date.parse(asOf.dateTime) - Date.now() : 0;
  let paused = false;

  // --- times -------------------------------------------------------------------------------------

  const UNITS = [[172800, 86400, "d"], [7200, 3600, "h"], [120, 60, "min"], [0, 1, "s"]];

  function ago(seconds) {
    const whole = Math.round(seconds);
    if (whole === 0) return "now";
    const size = Math.abs(whole);
    const [, length, name] = UNITS.find((each) => size >= each[0]);
    const text = `${Math.round(size / length)} ${name}`;
    return whole > 0 ? `in ${text}` : `${text} ago`;
  }

  function span(seconds) {
    const size = Math.abs(seconds);
    if (size < 9.95) return `${size.toFixed(1)} s`;
    if (size < 120) return `${size.toFixed(0)} s`;
    if (size < 7200) return `${(size / 60).toFixed(0)} min`;
    return size < 172800 ? `${(size / 3600).toFixed(1)} h` : `${(size / 86400).toFixed(0)} days`;
  }

  function tellTimes() {
    if (document.hidden || paused) return;
    const now = Date.now() + ahead;
    for (const each of document.querySelectorAll("time[data-told]")) {
      const seconds = (Date.parse(each.dateTime) - now) / 1000;
      const text = each.dataset.told === "span" ? span(seconds) : ago(seconds);
      if (each.textContent !== text) each.textContent = text;
    }
  }
  setInterval(tellTimes, 1000);

  // --- live: nothing moves under somebody's hands, and nothing is asked for while nobody looks -----

  function isHeld() {
    const chosen = document.getSelection();
    return (
      live.contains(document.activeElement) ||
      live.querySelector("details.asks[open], input:checked") !== null ||
      (chosen !== null && !chosen.isCollapsed && live.contains(chosen.anchorNode))
    );
  }

  function listen(wanted) {
    if (!stream || !window.htmx) return;
    if (wanted) {
      htmx.trigger(stream, "htmx:afterProcessNode");
      for (const each of stream.querySelectorAll("[sse-swap]")) htmx.trigger(each, "htmx:afterProcessNode");
    } else {
      htmx.trigger(stream, "htmx:beforeCleanupElement");
    }
  }

  function setPaused(wanted) {
    if (!pause) return;
    paused = wanted;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
    listen(!paused && !document.hidden);
  }

  if (stream && live) {
    const opened = new Set();
    if (pause) {
      pause.hidden = false;
      pause.addEventListener("click", () => setPaused(!paused));
    }
    document.addEventListener("visibilitychange", () => {
      if (!paused) listen(!document.hidden);
    });
    live.addEventListener("toggle", (event) => {
      const { id, open } = event.target;
      if (id) opened[open ? "add" : "delete"](id);
    }, true);
    stream.addEventListener("htmx:sseBeforeMessage", (event) => {
      if (event.target === live && isHeld()) event.preventDefault();
    });
    stream.addEventListener("htmx:sseMessage", (event) => {
      const found = document.getElementById("trouble-in");
      if (event.target === found) {
        trouble.textContent = found.textContent;
        trouble.hidden = false;
        return;
      }
      trouble.hidden = true;
      for (const id of opened) {
        const each = document.getElementById(id);
        if (each && "open" in each) each.open = true;
      }
      const stamp = live.querySelector("[data-as-of]");
      if (stamp && asOf) {
        asOf.dateTime = stamp.dataset.asOf;
        asOf.textContent = stamp.dataset.asOf.slice(11, 19);
        every.textContent = stamp.dataset.every || "";
        ahead = Date.parse(asOf.dateTime) - Date.now();
      }
      tellTimes();
      document.dispatchEvent(new Event("fencerow:shown"));
    });
  }

  // --- a sheet that asks is closed by a press beside it --------------------------------------------

  document.addEventListener("click", (event) => {
    for (const each of document.querySelectorAll("details.asks[open]")) {
      if (!each.contains(event.target)) each.open = false;
    }
  });

  // --- keys --------------------------------------------------------------------------------------

  let afterG = false;

  function move(step) {
    const rows = [...document.querySelectorAll("tbody tr")].map((row) => row.querySelector("a")).filter(Boolean);
    const at = rows.indexOf(document.activeElement);
    const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step];
    if (next) next.focus();
  }

  function pressed(key) {
    const search = document.querySelector("input[type=search]");
    if (key === "/") {
      if (search) search.focus();
      else location.assign(`${base}/jobs`);
    } else if (key === "?") document.getElementById("keys").showModal();
    else if (key === "j") move(1);
    else if (key === "k") move(-1);
    else if (key === "p") setPaused(!paused);
    else if (key === "g") {
      afterG = true;
      setTimeout(() => { afterG = false; }, 1500);
    } else return false;
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      for (const each of document.querySelectorAll("details.asks[open]")) each.open = false;
      if (document.activeElement) document.activeElement.blur();
      return;
    }
    if (event.target.closest("input, textarea, select, dialog")) return;
    if (afterG) {
      afterG = false;
      const line = [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === event.key);
      if (line) location.assign(line.href);
      return;
    }
    if (pressed(event.key)) event.preventDefault();
  });
})();
