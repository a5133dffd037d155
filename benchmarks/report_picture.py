"""The picture of a report that the README shows.

    python -m benchmarks.report_picture [docs/report.png]

Forty make-believe parties train in private on synthetic ratings of the shape of MovieLens 1M, 200 canaries
are planted among them, and chromium takes the picture of the top of the report, of what attacks found, and
of how good it is. It takes about two minutes, and whatever it makes besides the picture is removed.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cofactor as cf
from benchmarks.report_speed import write_ratings

WIDTH = 1_000
KEPT = """
parts => {
  for (const each of document.querySelectorAll("main > section"))
    if (!parts.includes(each.id)) each.remove();
  const last = document.querySelector(`#${parts.at(-1)} figure`);
  while (last.nextSibling) last.nextSibling.remove();
  return last.getBoundingClientRect().bottom;
}
"""
"""Leaves some parts of the page, the last one to its first chart; returns where that ends."""
SHOWN = ("attacks", "accuracy")
COMMANDS = (
    "train ratings.csv --parties 40 --split horizontal --scale 1:5 --epsilon 2 --delta 1e-6 "
    "--test-fraction 0.1 --seed 7 --out together --quiet",
    "audit together ratings.csv --canaries 200 --quiet",
    "report together --out together.html",
)


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/report.png")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_ratings(cf.synthetic.like("ml-1m", seed=7).ratings, folder / "ratings.csv")
        for words in COMMANDS:
            print(f"cofactor {words}", flush=True)
            subprocess.run([sys.executable, "-m", "cofactor", *words.split()], cwd=folder, check=True)
        take(folder / "together.html", target)
    print(f"{target}: {target.stat().st_size / 1e3:.0f} kB")


def take(page: Path, target: Path) -> None:
    """Take a picture of some parts of a page; whatever lies between them is left out."""
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
    with sync_playwright() as play:
        launched = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        shown = launched.new_page(viewport={"width": WIDTH, "height": 100})
        shown.goto(page.resolve().as_uri())
        height = int(shown.evaluate(KEPT, SHOWN)) + 24
        shown.set_viewport_size({"width": WIDTH, "height": height})
        shown.screenshot(path=target)
        launched.close()


if __name__ == "__main__":
    main()
