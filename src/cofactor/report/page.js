"use strict";
// Buttons that copy what stands below them.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copies]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copies);
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    // A page from disk may not write to the clipboard: select the text instead.
    getSelection().selectAllChildren(source);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});
// Paper shows everything.
const opened = [];
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details:not([open])")) { each.open = true; opened.push(each); }
});
addEventListener("afterprint", () => { while (opened.length) opened.pop().open = false; });
