"use strict";

const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
const words = new Intl.Collator("en", { numeric: true });

/** What a cell is sorted by, or null where it is missing: missing cells stand last whichever way. */
function key(cell, isNumber) {
  if (isNumber) return "value" in cell.dataset ? Number(cell.dataset.value) : null;
  const text = cell.textContent.trim();
  return text === "" || text === "—" ? null : text;
}

/** Make the headers of a table buttons that sort it: up, down, then in its own order again. */
function makeSortable(table) {
  const body = table.tBodies[0];
  const own = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    if (own.length < 2 || !header.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const order = NEXT[header.getAttribute("aria-sort") ?? "none"];
      const isNumber = header.classList.contains("number");
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      if (order !== "none") header.setAttribute("aria-sort", order);
      const sign = order === "descending" ? -1 : 1;
      const rows = own.map((row) => [key(row.cells[column], isNumber), row]);
      if (order !== "none") {
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * (isNumber ? a - b : words.compare(a, b));
        });
      }
      body.append(...rows.map(([, row]) => row));
    });
  });
}

/** Let a pointer, a tap or a button choose a run, and say what its curves are. */
function makeReadable(curves) {
  const lines = [...curves.querySelectorAll(".panels .line")];
  const buttons = [...curves.querySelectorAll(".runs button")];
  const reading = curves.querySelector(".reading");
  const hint = reading.textContent;
  let kept = null;

  const valuesOf = (line) => line.dataset.values.split(" ");
  const panelOf = (line) => line.closest("figure");
  const tell = (line, place) =>
    `${panelOf(line).dataset.score} ${valuesOf(line)[place]} % at ${line.dataset.places.split(" ")[place]} ${curves.dataset.unit}`;

  function show(run, line, place) {
    curves.classList.toggle("is-chosen", run !== null);
    for (const other of lines) other.classList.toggle("chosen", other.dataset.run === run);
    for (const dot of curves.querySelectorAll(".at")) dot.setAttribute("visibility", "hidden");
    if (run === null) {
      reading.textContent = hint;
      return;
    }
    const own = lines.filter((other) => other.dataset.run === run);
    const told = line ? [tell(line, place)] : own.map((other) => tell(other, valuesOf(other).length - 1));
    reading.textContent = `${buttons.find((button) => button.dataset.run === run).title}: ${told.join(", ")}.`;
    if (line) {
      const dot = panelOf(line).querySelector(".at");
      const point = line.points[place];
      dot.setAttribute("cx", point.x);
      dot.setAttribute("cy", point.y);
      dot.setAttribute("visibility", "visible");
    }
  }

  for (const button of buttons) {
    const run = button.dataset.run;
    button.addEventListener("click", () => {
      kept = kept === run ? null : run;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other.dataset.run === kept));
      show(kept);
    });
    for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => show(run));
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => show(kept));
  }
  for (const panel of curves.querySelectorAll(".panels svg")) {
    const inside = [...panel.querySelectorAll(".line")];
    const point = (event) => {
      const here = new DOMPoint(event.clientX, event.clientY).matrixTransform(panel.getScreenCTM().inverse());
      let nearest = [20, null, 0]; // farther away than this, in units of the drawing, nothing is meant
      for (const line of inside) {
        for (let place = 0; place < valuesOf(line).length; place++) {
          const distance = Math.hypot(line.points[place].x - here.x, line.points[place].y - here.y);
          if (distance < nearest[0]) nearest = [distance, line, place];
        }
      }
      const [, line, place] = nearest;
      if (line) show(line.dataset.run, line, place);
      else show(kept);
    };
    panel.addEventListener("pointermove", point);
    panel.addEventListener("pointerdown", point);
    panel.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") show(kept);
    });
  }
  for (const part of curves.querySelectorAll("[hidden]")) part.hidden = false;
  for (const button of buttons) button.disabled = false;
}

document.querySelectorAll("table").forEach(makeSortable);
document.querySelectorAll(".curves").forEach(makeReadable);

/** Open the folded section that a link leads to, and all of them on paper. */
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target && target.closest("details");
  if (folded) folded.open = true;
}
window.addEventListener("hashchange", openTarget);
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => (details.open = true)));
openTarget();
