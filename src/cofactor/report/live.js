// What changes is written by the command that serves this page; it comes as it is to be shown.
const at = (identity) => document.getElementById(identity);
const tell = (words) => { if (at("told")) at("told").textContent = words; };
const title = (details) => details.closest("figure").querySelector("figcaption").textContent;
const GONE = "The command that serves this page does not answer: this was known last.";
let state = "";
function watch() {
  const source = new EventSource("events");
  source.onmessage = (event) => show(JSON.parse(event.data));
  source.onerror = () => {
    tell(GONE);
    // A browser tries again by itself, but not where it was refused: too many pages may have watched.
    if (source.readyState === EventSource.CLOSED) setTimeout(watch, 5000);
  };
}
function show(news) {
  // PAGE is which page this is, as it was served.
  if (news.page !== PAGE) { location.reload(); return; }
  if (!at("head")) return;
  const kept = keep();
  at("head").innerHTML = news.head;
  at("body").innerHTML = news.body;
  kept();
  at("stop").hidden = !news.stoppable;
  if (state !== news.state || at("told").textContent === GONE) tell("");
  // Only a new state is read aloud: numbers change too often.
  if (state && state !== news.state) at("state").textContent = `It is ${news.state} now.`;
  state = news.state;
}
// What a reader has opened, pushed aside or stands on stays so when numbers change.
function keep() {
  const all = (what) => [...at("body").querySelectorAll(what)];
  const open = new Set(all("figure details[open]").map(title));
  const aside = all(".scrolls, .plot").map((each) => each.scrollLeft);
  const focused = all("summary, [tabindex]").indexOf(document.activeElement);
  return () => {
    for (const each of all("figure details")) each.open = open.has(title(each));
    all(".scrolls, .plot").forEach((each, number) => { each.scrollLeft = aside[number] ?? 0; });
    if (focused >= 0) all("summary, [tabindex]")[focused]?.focus({ preventScroll: true });
  };
}
const QUESTION = "End the training after this round? It keeps what it has learned by then, and the guarantee is "
  + "that of what was released by then, if nothing that was released is why you end it. It cannot be taken up again.";
at("stop")?.addEventListener("click", async () => {
  if (!confirm(QUESTION)) return;
  at("stop").disabled = true;
  const answer = await fetch("stop", { method: "POST" }).catch(() => null);
  at("stop").disabled = false;
  at("stop").hidden = Boolean(answer?.ok);
  const words = answer ? await answer.text() : "no answer.";
  tell(answer?.ok ? words : `It could not be told to stop: ${words}`);
});
watch();
