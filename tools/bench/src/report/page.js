// Points tell their figures at once, to the mouse and to the arrow keys; without this script the browser's own titles do.
(() => {
  const tip = document.getElementById("tip");
  let current = null;
  for (const point of document.querySelectorAll(".pt")) {
    const title = point.querySelector("title");
    if (title) { point.dataset.tip = title.textContent; title.remove(); }
  }
  const hide = () => { current?.classList.remove("on"); current = null; tip.hidden = true; };
  const show = (point) => {
    hide();
    current = point;
    point.classList.add("on");
    tip.textContent = point.dataset.tip;
    tip.hidden = false;
    const box = point.getBoundingClientRect();
    const left = box.left + Math.min(box.width, 300) / 2 - tip.offsetWidth / 2;
    tip.style.left = Math.max(4, Math.min(left, innerWidth - tip.offsetWidth - 4)) + "px";
    tip.style.top = (box.top > tip.offsetHeight + 8 ? box.top - tip.offsetHeight - 6 : box.bottom + 6) + "px";
  };
  document.addEventListener("pointerover", (event) => {
    const point = event.target.closest?.(".pt");
    if (point) show(point); else if (current) hide();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const plot = document.activeElement?.closest?.("svg.plot");
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!plot || !step) return;
    const points = [...plot.querySelectorAll(".pt")].filter((point) => point.getClientRects().length);
    if (!points.length) return;
    event.preventDefault();
    const at = points.indexOf(current);
    show(points[at < 0 ? (step > 0 ? 0 : points.length - 1) : (at + step + points.length) % points.length]);
  });
  addEventListener("scroll", hide, { passive: true });
  document.addEventListener("focusout", hide);
})();
