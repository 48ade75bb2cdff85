"use strict";
// A part that says it is live is asked for again until it says so no more; without this script a page is only older.
const live = () => document.querySelector("[data-live]");
async function again() {
  const part = live();
  if (!part) return;
  try {
    const answer = await fetch(location.href, { headers: { "X-Part": part.id }, credentials: "same-origin" });
    if (answer.ok && live() === part) {
      const other = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
      if (other) part.replaceWith(other);
    }
  } finally {
    setTimeout(again, 2000);
  }
}
if (live()) setTimeout(again, 1000);
