"""Reads firnline.yaml, level by level. Every value remembers its line; what is not understood is an error, never
ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from firnline.errors import PolicyError
from firnline.policy.limits import LIMITS, parse_limit, parse_place
from firnline.policy.policy import Level, Setting, Source
from firnline.policy.rules import RULE_NAMES, Rule
from firnline.policy.values import LONGEST_WRITE_MS, SETTINGS, TOP_ONLY, parse_rule, parse_setting

if TYPE_CHECKING:
    import yaml


@dataclass(frozen=True, slots=True)
class Section:
    """One level: its rules (None: turned off here), its other settings and the levels inside it by name.

    The whole of a firnline.yaml is one section; catalogs, namespaces and tables are inside each other. `at` is the
    file and line of its name. Only the whole says what stores may be asked for, by place, which tiers there are,
    what storage costs, and how a worker works.
    """

    keep: Mapping[str, Setting[Rule | None]] = field(default_factory=dict)
    settings: Mapping[str, Setting[Any]] = field(default_factory=dict)
    inside: Mapping[str, Section] = field(default_factory=dict)
    stores: Mapping[str, Mapping[str, Setting[int]]] = field(default_factory=dict)
    tiers: Mapping[str, Mapping[str, Setting[Any]]] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, Setting[Any]]] = field(default_factory=dict)
    worker: Mapping[str, Setting[Any]] = field(default_factory=dict)
    at: str = field(default="", compare=False)


def written_values(section: Section, setting: str) -> Iterator[Any]:
    """Yields what a setting is at any level of the file."""
    if setting in section.settings:
        yield section.settings[setting].value
    for inner in section.inside.values():
        yield from written_values(inner, setting)


def longest_write_ms(config: Section) -> int:
    """Returns how long a write may take, from its first file to its commit."""
    written = config.settings.get("longest-write")
    return LONGEST_WRITE_MS if written is None else written.value


_STORES, _TIERS, _PRICES, _WORKER = "stores", "tiers", "prices", "worker"
INSIDE = {
    Level.GLOBAL: ("catalogs", Level.CATALOG),
    Level.CATALOG: ("namespaces", Level.NAMESPACE),
    Level.NAMESPACE: ("tables", Level.TABLE),
}
"""What a level has inside of it, and by which key."""
ON_TOP = (_STORES, _TIERS, _PRICES, _WORKER)
"""The groups that only the top of a file has."""


def parse_policy(text: str, path: str = "firnline.yaml") -> Section:
    """Returns what the file says. Raises PolicyError with path, line and key; only that needs `path`."""
    root = _compose(text, path)
    if root is None:
        return Section()
    section = _Reader(path).section(root, Level.GLOBAL, "")
    if section.keep and all(setting.value is None for setting in section.keep.values()):
        first = next(iter(section.keep.values())).source.line
        raise PolicyError(f"{path}:{first}: empty policy: every rule is off", hint=EMPTY_HINT)
    return section


EMPTY_HINT = (
    "an empty policy would expire everything but the heads of branches and tags; "
    "write at least one rule, or no keep at all for the table's own retention"
)


def unknown_key(where: str, key: str, allowed: Collection[str]) -> PolicyError:
    """Returns the error for a key that nobody knows, with the nearest one that is known."""
    near = get_close_matches(key, allowed, n=1)
    guess = f" (did you mean {near[0]!r}?)" if near else ""
    return PolicyError(f"{where}: unknown key {key!r}{guess}", hint=f"allowed: {', '.join(allowed)}")


def _compose(text: str, path: str) -> yaml.Node | None:
    import yaml

    try:
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        hint = 'quote a pattern: "*"' if "alias" in (error.context or "") else ""
        raise PolicyError(f"{path}{line}: not YAML: {error.problem}", hint=hint) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise PolicyError(f"{path}: not YAML: {str(error).splitlines()[0]}") from None
    return root


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns the nodes of one file into sections."""

    path: str

    def at(self, node: yaml.Node) -> str:
        return f"{self.path}:{_line(node)}"

    def section(self, node: yaml.Node, level: Level, name: str) -> Section:
        """Returns one level of the file and all levels inside it."""
        from firnline.policy.prices import PRICE_KEYS, parse_price
        from firnline.policy.tiers import TIER_KEYS, parse_of_tier
        from firnline.policy.worker.keys import WORKER_KEYS, parse_of_worker

        group, deeper = INSIDE.get(level, ("", level))
        settled = (each for each in SETTINGS if level is Level.GLOBAL or each not in TOP_ONLY)
        on_top = ON_TOP if level is Level.GLOBAL else ()
        allowed = ("keep", *settled, *([group] if group else []), *on_top)
        keep: dict[str, Setting[Rule | None]] = {}
        settings: dict[str, Setting[Any]] = {}
        inside: dict[str, Section] = {}
        stores: dict[str, dict[str, Setting[int]]] = {}
        tiers: dict[str, dict[str, Setting[Any]]] = {}
        prices: dict[str, dict[str, Setting[Any]]] = {}
        worker: dict[str, Setting[Any]] = {}
        for key, child in self.pairs(node, name or "the file", allowed):
            source = Source(level, name, self.path, _line(key))
            if key.value == "keep":
                keep = self.keep(key, child, level, name)
            elif key.value == group:
                inside = self.named(child, group, deeper)
            elif key.value == _STORES:
                stores = self.stores(child)
            elif key.value == _TIERS:
                tiers = self.named_groups(child, _TIERS, TIER_KEYS, parse_of_tier)
            elif key.value == _PRICES:
                prices = self.named_groups(child, _PRICES, PRICE_KEYS, parse_price)
            elif key.value == _WORKER:
                worker = self.group(child, _WORKER, WORKER_KEYS, parse_of_worker)
            else:
                text = self.text(child, key.value)
                settings[key.value] = Setting(parse_setting(key.value, text, self.where(key)), source)
        return Section(keep, settings, inside, stores, tiers, prices, worker)

    def where(self, key: yaml.ScalarNode) -> str:
        return f"{self.at(key)}: {key.value}"

    def keep(self, at: yaml.Node, node: yaml.Node, level: Level, name: str) -> dict[str, Setting[Rule | None]]:
        rules: dict[str, Setting[Rule | None]] = {}
        for key, child in self.pairs(node, "keep", RULE_NAMES):
            rule = parse_rule(key.value, self.text(child, key.value), self.where(key))
            rules[key.value] = Setting(rule, Source(level, name, self.path, _line(key)))
        if not rules:
            raise PolicyError(f"{self.at(at)}: empty policy: keep has no rule", hint=EMPTY_HINT)
        return rules

    def named(self, node: yaml.Node, group: str, level: Level) -> dict[str, Section]:
        return {
            key.value: replace(self.section(child, level, key.value), at=self.at(key))
            for key, child in self.pairs(node, group)
        }

    def stores(self, node: yaml.Node) -> dict[str, dict[str, Setting[int]]]:
        """Returns what is said of each place. Raises where one is named twice, in whatever spellings."""
        found: dict[str, dict[str, Setting[int]]] = {}
        for key, child in self.pairs(node, _STORES):
            place = parse_place(key.value, self.where(key))
            if place in found:
                raise PolicyError(f"{self.where(key)}: {place} is written twice", hint="write all its limits together")
            found[place] = {
                name.value: Setting(
                    parse_limit(name.value, str(self.text(said, name.value)), self.where(name)),
                    Source(Level.GLOBAL, key.value, self.path, _line(name)),
                )
                for name, said in self.pairs(child, key.value, LIMITS)
            }
        return found

    def named_groups(
        self, node: yaml.Node, group: str, allowed: Collection[str], parse: Callable[[str, str | list[str], str], Any]
    ) -> dict[str, dict[str, Setting[Any]]]:
        """Returns what is said of each name of a group, key by key."""
        return {key.value: self.group(child, key.value, allowed, parse) for key, child in self.pairs(node, group)}

    def group(
        self, node: yaml.Node, name: str, allowed: Collection[str], parse: Callable[[str, str | list[str], str], Any]
    ) -> dict[str, Setting[Any]]:
        """Returns what is said of one thing, key by key."""
        return {
            key.value: Setting(
                parse(key.value, self.text(said, key.value), self.where(key)),
                Source(Level.GLOBAL, name, self.path, _line(key)),
            )
            for key, said in self.pairs(node, name, allowed)
        }

    def pairs(
        self, node: yaml.Node, what: str, allowed: Collection[str] | None = None
    ) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        """Yields the keys and values of a mapping. Raises for anything else, unknown or repeated keys."""
        import yaml

        if not isinstance(node, yaml.MappingNode):
            raise PolicyError(f"{self.at(node)}: {what} must be a mapping of keys to values")
        lines: dict[str, int] = {}
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise PolicyError(f"{self.at(key)}: a key in {what} must be a plain word")
            if allowed is not None and key.value not in allowed:
                raise unknown_key(self.at(key), key.value, allowed)
            if key.value in lines:
                raise PolicyError(f"{self.at(key)}: {key.value!r} is written twice, first on line {lines[key.value]}")
            lines[key.value] = _line(key)
            yield key, child

    def text(self, node: yaml.Node, key: str) -> str | list[str]:
        """Returns a value as it is written; a list of such for a list."""
        import yaml

        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        if isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value):
            return [str(item.value) for item in node.value]
        raise PolicyError(f"{self.at(node)}: {key}: a plain value is needed, not a mapping")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
