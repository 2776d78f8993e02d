"""Charts drawn on the server as SVG, without a style or a script of their own: console.css colours them.

`pygal` is imported where it draws: it would cost every start of a process that never shows a chart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from pygal import StackedBar

WIDTH, HEIGHT = 960, 260
DRAWN = {"g", "path", "rect", "text"}  # what is left of the library's: no style, no script, no comment
LABELS = 7  # below the axis, however many columns there are


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One part of every column, from the bottom up."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One stretch of time: what is read out about it, and where a click leads."""

    label: str
    readout: str
    href: str


def columns_chart(
    columns: Sequence[Column],
    layers: Sequence[Layer],
    *,
    title: str,
    write: Callable[[float], str],
    before: Sequence[float] = (),
) -> SafeString:
    """Stacked columns, each one link as a whole; `before` is a thin line over them."""
    import pygal

    top = max([sum(values) for values in zip(*(layer.values for layer in layers), strict=True)] + [*before, 0])
    chart = pygal.StackedBar(
        css=[],
        js=[],
        no_prefix=True,
        explicit_size=False,
        disable_xml_declaration=True,
        width=WIDTH,
        height=HEIGHT,
        margin=4,
        show_legend=False,
        show_minor_x_labels=False,
        truncate_label=-1,
        max_scale=5,
        range=(0, top * 1.05 or 1),
        value_formatter=write,
        x_labels=[column.label for column in columns],
        x_labels_major=[column.label for column in columns[:: -(-len(columns) // LABELS) or 1]],
    )
    for layer in layers:
        chart.add(layer.name, list(layer.values))
    chart.add_xml_filter(lambda root: _finished(chart, root, columns, before, title))
    return mark_safe(str(chart.render()))  # noqa: S308  an XML library wrote it, which escapes every text


def _finished(
    chart: StackedBar, root: Element, columns: Sequence[Column], before: Sequence[float], title: str
) -> Element:
    """The library's drawing without its style, scripts and tooltip; with a line for what was before, and the links."""
    for parent in list(root.iter()):
        for child in list(parent):
            if (
                child.tag in {"defs", "desc", "title"}
                or child.get("class") == "tooltip"
                or not isinstance(child.tag, str)
            ):
                parent.remove(child)
    del root.attrib["id"]
    root.set("class", "gov-svg")
    root.set("role", "group")
    root.set("aria-label", title)
    plot = next(node for node in root.iter() if node.get("class") == "plot")
    middles = [chart.view.x((number + 0.5) / len(columns)) for number in range(len(columns))]
    if before:
        points = " ".join(f"{x:.1f},{chart.view.y(value):.1f}" for x, value in zip(middles, before, strict=False))
        chart.svg.node(plot, "polyline", points=points, class_="gov-before")
    width = chart.view.width / len(columns)
    for x, column in zip(middles, columns, strict=True):
        link = chart.svg.node(plot, "a", class_="gov-column", **{"aria-label": column.readout})
        link.set("href", column.href)  # the library would write the old form, which is no link to some readers
        area = {"x": f"{x - width / 2:.1f}", "y": "0", "width": f"{width:.1f}", "height": f"{chart.view.height:.1f}"}
        chart.svg.node(link, "rect", **area)
        chart.svg.node(link, "title").text = column.readout
    return root
