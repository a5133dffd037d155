// Every choice was planned beforehand: sliders only pick one of them.
{
  const planner = document.getElementById("planner");
  const read = (name) => JSON.parse(planner.dataset[name]);
  const cells = read("cells"), lengths = read("lengths"), place = read("place");
  const all = (selector) => document.querySelectorAll(selector);
  const cellAt = () => cells[place.reduce((sum, at, axis) => sum * lengths[axis] + at, 0)];

  const made = (name, text, attributes) => Object.assign(document.createElement(name), { textContent: text, ...attributes });
  const row = (texts) => {
    const line = document.createElement("tr");
    texts.forEach((text, at) => {
      const last = at === texts.length - 1 ? { className: "number" } : {};
      line.append(made(at ? "td" : "th", text, at ? last : { scope: "row" }));
    });
    return line;
  };
  const show = () => {
    const cell = cellAt();
    for (const [name, text] of Object.entries(cell.slots)) {
      const target = document.querySelector(`[data-slot="${name}"]`) ?? document.getElementById(`copy-${name}`);
      if (target && target.textContent !== text) target.textContent = text;
    }
    for (const card of all("[data-card]")) card.className = `answer ${cell.tones[card.dataset.card]}`;
    for (const list of all("[data-list]")) {
      const texts = cell.lists[list.dataset.list];
      list.replaceChildren(...texts.map((text) => made("li", text)));
      list.closest("div").hidden = !texts.length;
    }
    document.querySelector("#releases tbody").replaceChildren(...cell.releases.map(row));
    for (const chart of all("[data-chart]")) chart.hidden = chart.dataset.chart !== cell.chart;
  };
  for (const slider of all("input[data-axis]")) {
    const values = JSON.parse(slider.dataset.values);
    slider.disabled = false;
    slider.addEventListener("input", () => {
      place[slider.dataset.axis] = Number(slider.value);
      slider.setAttribute("aria-valuetext", values[slider.value]);
      document.getElementById(`${slider.id}-value`).textContent = values[slider.value];
      show();
    });
  }
}
