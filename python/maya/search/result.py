"""What a search found, for people, programs and notebooks."""

from __future__ import annotations

import pathlib
from typing import Any

from maya.search import export, outcome, ranking, summary
from maya.search.space import Space
from maya.search.store import Record, _write


class SearchResult:
    """Records of a search, best first in `ranked`. A notebook shows its page."""

    def __init__(self, space: Space, folder: pathlib.Path, records: list[Record], notes: list[str] | None = None,
                 finished: bool = True):
        self.space, self.folder, self.records = space, folder, records
        self.notes, self.finished = notes or [], finished

    @property
    def ranked(self) -> list[Record]:
        return ranking.ranked(self.space, self.records)

    @property
    def may_fit(self) -> list[Record]:
        """Would be better than the best, if they fit: predicted memory is not exact enough to tell."""
        return ranking.may_fit(self.space, self.records)

    @property
    def best(self) -> Record | None:
        found = self.ranked
        return found[0] if found else None

    @property
    def baseline(self) -> Record | None:
        return next((r for r in self.records if r.baseline and r.ok), None)

    @property
    def pareto(self) -> list[Record]:
        return ranking.pareto(self.space, self.records)

    @property
    def skipped(self) -> list[Record]:
        return [r for r in self.records if r.kind == outcome.SKIPPED]

    def summary(self) -> str:
        return summary.text(self)

    def to_csv(self) -> str:
        return export.to_csv(self.space, self.records)

    def to_json(self) -> str:
        return export.to_json(self.space, self.records, summary.facts(self))

    def page(self) -> str:
        from maya.search import page

        return page.html(self)

    def write(self) -> None:
        """results.csv, results.json and search.html into the directory of the search."""
        _write(self.folder / "results.csv", self.to_csv())
        _write(self.folder / "results.json", self.to_json())
        _write(self.folder / "search.html", self.page())

    def _repr_html_(self) -> str:
        import html

        return (f'<iframe srcdoc="{html.escape(self.page(), quote=True)}" style="width:100%;height:820px;border:0" '
                'title="Maya search"></iframe>')

    def __repr__(self) -> str:
        best = self.best
        found = f"best {self.space.label(best.values)}" if best else "nothing fits"
        return f"<SearchResult of {len(self.records)} configurations: {found}>"

    def frame(self) -> Any:
        """The rows of results.csv as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(export.rows(self.space, self.records))
