// Bulk actions: rows are chosen by key, a press shows that it is under way, and what is left goes on by itself.
"use strict";
(() => {
  const choose = document.getElementById("choose");
  const form = document.getElementById("bulk");

  // --- choosing rows ------------------------------------------------------------------------------

  const boxes = () => [...document.querySelectorAll("input[form=choose][type=checkbox]")];

  function tellChosen() {
    const chosen = boxes().filter((box) => box.checked).length;
    const told = document.getElementById("chosen");
    told.textContent = chosen ? `${chosen} chosen` : "";
  }

  if (choose) {
    document.addEventListener("change", (event) => {
      if (event.target.matches("input[form=choose]")) tellChosen();
    });
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
      if (event.key === "x") {
        const row = document.activeElement && document.activeElement.closest("tr");
        const box = row && row.querySelector("input[form=choose]");
        if (box) box.checked = !box.checked;
      } else if (event.key === "a") {
        const all = boxes();
        const wanted = all.some((box) => !box.checked);
        for (const box of all) box.checked = wanted;
      } else return;
      event.preventDefault();
      tellChosen();
    });
  }

  // --- going on -----------------------------------------------------------------------------------

  // Only who pressed in this tab goes on by itself: an address that somebody sent never does.
  const KEPT = "fencerow-bulk";

  function identity() {
    const named = (name) => (form.elements.namedItem(name) || { value: "" }).value;
    return ["verb", "q", "ids", "value", "at"].map(named).join("\n");
  }

  if (form) {
    const reason = form.elements.namedItem("reason");
    const button = form.querySelector("button[type=submit]");
    form.addEventListener("submit", () => {
      sessionStorage.setItem(KEPT, JSON.stringify([identity(), reason.value]));
      setTimeout(() => { button.disabled = true; button.textContent = "Under way…"; }, 0);
    });
    const kept = JSON.parse(sessionStorage.getItem(KEPT) || "null");
    sessionStorage.removeItem(KEPT);
    const told = document.querySelector(".told.refused:not([hidden])");
    if ("rest" in form.dataset && kept && kept[0] === identity() && !told) {
      reason.value = kept[1];
      const stop = document.createElement("button");
      stop.type = "button";
      stop.className = "button";
      stop.textContent = "Stop here";
      form.append(stop);
      const waiting = setTimeout(() => form.requestSubmit(), 1000);
      stop.addEventListener("click", () => { clearTimeout(waiting); stop.remove(); });
    }
  }
})();
