"""Code in other languages than Python: definitions, comments, what is left, syntax errors."""

# ruff: noqa: E501, a sample and what is expected of it are read side by side

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from metatree_memory_tools.code.languages import code
from metatree_memory_tools.code.languages._table import LANGUAGES
from metatree_memory_tools.code.languages.code import Code, language_of

from metatree._util.process import resident_bytes
from metatree.trees.source_types import Outline, OutlinePart, SourceFile

SAMPLES = {
    "a.js": (
        """// Sells tea.
import { cup } from './cup.js';
const price = 3;

/** Brews tea. */
export async function brew(leaf, milk = false) {
  return cup(leaf);
}

export default class Pot extends Vessel {
  static size = 2;
  /** Pours. Slowly. */
  pour(into) { return into; }
}
const boil = (water) => {
  return water;
};
module.exports.serve = function (guest) { return guest; };
""",
        {"brew": "function", "Pot": "class", "Pot.pour": "method", "boil": "function", "module.exports.serve": "function"},
        {"brew": "export async function brew(leaf, milk = false) — Brews tea.", "Pot.pour": "pour(into) — Pours."},
        [("javascript", "'./cup.js'")],
    ),
    "a.tsx": (
        """import React from 'react';
/** A cup. */
export interface Cup { size: number }
type Leaf = string;
enum Kind { Green, Black }
abstract class Pot<T> {
  abstract pour(into: Cup): T;
  constructor(private leaf: Leaf) { super(); }
}
export const View = ({ cup }: Props) => <b>{cup}</b>;
namespace Tea { export function brew(): void {} }
""",
        {"Cup": "interface", "Leaf": "type", "Kind": "enum", "Pot": "class", "Pot.pour": "method",
         "Pot.constructor": "method", "View": "function", "Tea": "module"},
        {"Cup": "export interface Cup — A cup."},
        [("typescript", "'react'")],
    ),
    "A.java": (
        """/* Licence: MIT */
package tea.house;
import tea.Leaf;
import static tea.Cups.*;

/**
 * Brews <b>tea</b>.
 * @param <T> the leaf
 */
@Deprecated
public class Pot<T extends Leaf> implements Brewer {
    private int size = 2;
    public Pot(int size) { this.size = size; }
    /** Pours into {@code cup}. */
    @Override
    public void pour(Cup cup) throws Spill {
        cup.fill();
    }
    enum Kind { GREEN }
    record Sip(int ml) { }
    interface Brewer { void brew(); }
}
""",
        {"Pot": "class", "Pot.Pot": "constructor", "Pot.pour": "method", "Pot.Kind": "enum", "Pot.Sip": "record",
         "Pot.Brewer": "interface"},
        {"Pot.pour": "public void pour(Cup cup) throws Spill — Pours into cup."},
        [("java", "import tea.Leaf;"), ("java", "import static tea.Cups.*;")],
    ),
    "a.c": (
        """#include "tea.h"
#include <stdio.h>
#define MAX(a, b) ((a) > (b) ? (a) : (b))
/* A cup. */
struct cup { int size; };
typedef struct { int leaf; } pot_t;
enum kind { GREEN, BLACK };
static int count;

/**
 * @brief Brew some tea.
 * @param p the pot
 */
static const char *brew(struct pot *p,
                        int leaf)
{
    return p->name;
}
""",
        {"MAX": "macro", "cup": "struct", "pot_t": "type", "kind": "enum", "brew": "function"},
        {"brew": "static const char *brew(struct pot *p, int leaf) — Brew some tea.", "cup": "struct cup — A cup."},
        [("c", '"tea.h"'), ("c", "<stdio.h>")],
    ),
    "a.cpp": (
        """#include "pot.hpp"
namespace tea {
/// Holds tea.
template <typename T>
class Pot : public Vessel {
public:
    Pot() = default;
    ~Pot() { drain(); }
    void pour(T &cup) const { cup.fill(); }
    bool operator==(const Pot &other) const { return true; }
private:
    int size_;
};
}  // namespace tea

int tea::Pot::drain(int speed) {
    return speed;
}
""",
        {"Pot": "class", "Pot.Pot": "method", "Pot.~Pot": "method", "Pot.pour": "method", "Pot.operator==": "method",
         "tea.Pot.drain": "function"},
        {"Pot": "template <typename T> class Pot : public Vessel — Holds tea. Members: Pot, ~Pot, pour, operator==."},
        [("c++", '"pot.hpp"')],
    ),
    "a.cs": (
        """using System;
using Tea.Leaves;
namespace Tea.House
{
    /// <summary>Brews tea.</summary>
    [Serializable]
    public class Pot : IBrewer
    {
        public int Size { get; set; }
        public Pot(int size) { Size = size; }
        /// <summary>Pours.</summary>
        public void Pour(Cup cup) => cup.Fill();
    }
    public interface IBrewer { void Brew(); }
    public enum Kind { Green }
    public record Sip(int Ml);
}
""",
        {"Pot": "class", "Pot.Size": "property", "Pot.Pot": "constructor", "Pot.Pour": "method", "IBrewer": "interface", "Kind": "enum", "Sip": "record"},
        {"Pot.Pour": "public void Pour(Cup cup) — Pours."},
        [("c#", "using System;"), ("c#", "using Tea.Leaves;")],
    ),
    "a.go": (
        """// Package tea sells tea.
package tea

import (
	"fmt"
	"example.org/house/cup"
)

var price = 3

// Pot holds tea.
type Pot struct {
	size int
}

// Pour fills a cup.
func (p *Pot) Pour(c cup.Cup) (int, error) {
	return 0, nil
}

func Brew[T any](leaf T) string { return fmt.Sprint(leaf) }

type (
	Leaf string
	Cup  interface{ Fill() }
)
""",
        {"Pot": "type", "Pot.Pour": "method", "Brew": "function", "Leaf": "type", "Cup": "type"},
        {"Pot.Pour": "func (p *Pot) Pour(c cup.Cup) (int, error) — Pour fills a cup.", "Pot": "type Pot struct — Pot holds tea."},
        [("go", '"fmt"'), ("go", '"example.org/house/cup"')],
    ),
    "a.rs": (
        """//! Tea.
use crate::cup::{Cup, Size};
mod leaf;

/// Holds tea.
#[derive(Debug)]
pub struct Pot<'a> { name: &'a str }

impl<'a> Pot<'a> {
    /// Pours into a [`Cup`].
    pub fn pour(&self, cup: &mut Cup) -> Size { cup.fill() }
}
impl<'a> Brewer for Pot<'a> {
    fn brew(&self) {}
}
pub trait Brewer { fn brew(&self); }
macro_rules! boil { () => {} }
mod tests {
    #[test]
    fn boils() {}
}
""",
        {"Pot": "struct", "impl Pot": "impl", "Pot.pour": "method", "impl Brewer for Pot": "impl", "Pot.brew": "method",
         "Brewer": "trait", "boil": "macro", "tests": "module", "tests.boils": "method"},
        {"Pot.pour": "pub fn pour(&self, cup: &mut Cup) -> Size — Pours into a Cup.", "Pot": "pub struct Pot<'a> — Holds tea."},
        [("rust", "crate::cup::{Cup, Size}"), ("rust", "mod leaf")],
    ),
    "a.rb": (
        """require_relative 'cup'
require 'json'
module Tea
  # Holds tea.
  # Always hot.
  class Pot < Vessel
    SIZE = 2
    attr_reader :leaf

    # Pours.
    def pour(cup, slowly: false)
      cup.fill
    end

    def self.brew = new
  end
end
""",
        {"Tea": "module", "Tea.Pot": "class", "Tea.Pot.pour": "method", "Tea.Pot.brew": "method"},
        {"Tea.Pot": "class Pot < Vessel — Holds tea. Members: pour, brew.", "Tea.Pot.pour": "def pour(cup, slowly: false) — Pours."},
        [("ruby", "require_relative 'cup'"), ("ruby", "'json'")],
    ),
    "a.php": (
        """<?php
namespace Tea\\House;
use Tea\\Leaf;
require_once __DIR__ . '/cup.php';

/** Holds tea. */
final class Pot extends Vessel implements Brewer
{
    use Hot;
    private int $size = 2;
    /**
     * Pours.
     * @return bool
     */
    public function pour(Cup $cup): bool
    {
        return $cup->fill();
    }
}
interface Brewer { public function brew(): void; }
trait Hot { }
function boil(int $ml) { return $ml; }
""",
        {"Pot": "class", "Pot.pour": "method", "Brewer": "interface", "Hot": "trait",
         "boil": "function"},
        {"Pot.pour": "public function pour(Cup $cup): bool — Pours."},
        [("php", "use Tea\\Leaf;"), ("php", "__DIR__ . '/cup.php'")],
    ),
    "a.kt": (
        """package tea.house
import tea.Leaf

/** Holds tea. */
data class Pot(val size: Int) : Vessel() {
    fun pour(cup: Cup): Boolean { return cup.fill() }
    companion object { fun brew() = Pot(1) }
}
fun boil(ml: Int) = ml * 2
object Kettle { }
""",
        {"Pot": "class", "Pot.pour": "method", "Pot.brew": "method", "boil": "function", "Kettle": "class"},
        {"Pot.pour": "fun pour(cup: Cup): Boolean"},
        [("kotlin", "tea.Leaf")],
    ),
    "a.swift": (
        """import Foundation
/// Holds tea.
public class Pot: Vessel {
    var size = 2
    init(size: Int) { self.size = size }
    func pour(into cup: Cup) -> Bool { return true }
}
protocol Brewer { func brew() }
struct Cup { let ml: Int }
extension Pot { func drain() {} }
func boil(_ ml: Int) -> Int { ml }
""",
        {"Pot": "class", "Pot.init": "constructor", "Pot.pour": "method", "Brewer": "protocol",
         "Cup": "class", "Pot@2": "class", "boil": "function"},
        {"Pot.pour": "func pour(into cup: Cup) -> Bool"},
        [],
    ),
    "a.scala": (
        """package tea.house
import tea.{Leaf, Cup => Mug}

/** Holds tea. */
case class Pot(size: Int) extends Vessel {
  def pour(cup: Mug): Boolean = cup.fill()
}
object Pot { def brew(): Pot = Pot(1) }
trait Brewer { def brew(): Unit }
""",
        {"Pot": "class", "Pot.pour": "method", "Pot@2": "class", "Brewer": "trait"},
        {"Pot.pour": "def pour(cup: Mug): Boolean"},
        [("scala", "import tea.{Leaf, Cup => Mug}")],
    ),
    "a.sh": (
        """#!/bin/sh
# Brews tea.
. ./cup.sh
# Pours.
pour() {
  echo "$1"
}
function boil { true; }
pour now
""",
        {"pour": "function", "boil": "function"},
        {"pour": "pour() — Pours."},
        [("shell", "./cup.sh")],
    ),
    'a.ex': (
        '''defmodule Tea.Pot do
  @moduledoc """
  Holds tea. Always hot.
  """
  use GenServer
  alias Tea.{Cup, Leaf}
  import Tea.Kettle, only: [boil: 1]

  @size 2
  defstruct [:leaf, size: @size]

  @doc """
  Pours into a cup.

  Slowly.
  """
  @spec pour(t, Cup.t()) :: :ok | {:error, term}
  def pour(pot, cup \\\\ nil)
  def pour(%{leaf: nil}, _cup), do: {:error, :empty}

  def pour(pot, cup) when is_map(cup) do
    drain(pot)
    :ok
  end

  # Empties it.
  defp drain(pot), do: %{pot | size: 0}

  @doc false
  def brew, do: :tea

  defmacro steep(leaf) do
    quote do: unquote(leaf)
  end

  defmodule Lid do
    def lift(lid), do: lid
  end
end

defprotocol Tea.Brewer do
  @doc "Brews it."
  def brew(leaf)
end

defimpl Tea.Brewer, for: Tea.Leaf do
  def brew(leaf), do: leaf
end
''',
        {'Tea.Pot': 'module', 'Tea.Pot.pour': 'method', 'Tea.Pot.drain': 'method', 'Tea.Pot.brew': 'method', 'Tea.Pot.steep': 'method', 'Tea.Pot.Lid': 'module', 'Tea.Pot.Lid.lift': 'method', 'Tea.Brewer': 'interface', 'Tea.Brewer.brew': 'method', 'impl Tea.Brewer for Tea.Leaf': 'impl', 'Tea.Leaf.brew': 'method'},
        {'Tea.Pot.pour': 'def pour(pot, cup \\\\ nil) — Pours into a cup.', 'Tea.Brewer.brew': 'def brew(leaf) — Brews it.', 'Tea.Pot.drain': 'defp drain(pot), do: %{pot | size: 0} — Empties it.'},
        [('elixir', 'GenServer'), ('elixir', 'Tea.{Cup, Leaf}'), ('elixir', 'Tea'), ('elixir', 'Tea.Kettle'), ('elixir', 'Cup')],
    ),
    'a.hs': (
        """{-# LANGUAGE LambdaCase #-}
-- | A house of tea.
module Tea.House where

import qualified Data.Map as Map
import Tea.Leaf (Leaf)

-- | Holds tea. Always hot.
data Pot a = Pot
  { size :: Int
  , leaf :: a
  } deriving (Show, Eq)

newtype Cup = Cup Int
type Name = String

-- | Brews.
class Brewer b where
  brew :: b -> Leaf
  lift :: b -> b
  lift = id

instance Brewer (Pot a) where
  brew pot = undefined

-- | Pours into a cup.
pour :: Pot a -> Int -> Maybe Cup
pour (Pot 0 _) _ = Nothing
pour pot n
  | n > size pot = Nothing
  | otherwise = Just (Cup n)

(<+>) :: Cup -> Cup -> Cup
Cup a <+> Cup b = Cup (a + b)

limit :: Int
limit = 3
  where other = 2
""",
        {'Pot': 'type', 'Cup': 'type', 'Name': 'type', 'Brewer': 'class', 'Brewer.brew': 'method', 'Brewer.lift': 'method', 'Brewer (Pot a)': 'instance', 'Brewer (Pot a).brew': 'method', 'pour': 'function', '<+>': 'function', 'limit': 'function'},
        {'pour': 'pour :: Pot a -> Int -> Maybe Cup — Pours into a cup.', 'Pot': 'data Pot a — Holds tea.', '<+>': '(<+>) :: Cup -> Cup -> Cup', 'Brewer (Pot a)': 'instance Brewer (Pot a). Members: brew.'},
        [('haskell', 'Data.Map'), ('haskell', 'Tea.Leaf')],
    ),
    'a.lua': (
        """-- A house of tea.
local cup = require("tea.cup")
local M = {}

--- Pours into a cup.
-- @param cup the cup
function M.pour(cup, slowly)
  return cup
end

function M:drain()
  local function inner() end
end

local function brew(leaf) return leaf end

M.boil = function(ml)
  return ml * 2
end

local steep = function(x) return x end

local Pot = { lift = function() end }
return M
""",
        {'M.pour': 'function', 'M.drain': 'function', 'brew': 'function', 'M.boil': 'function', 'steep': 'function'},
        {'M.pour': 'function M.pour(cup, slowly) — Pours into a cup.', 'M.drain': 'function M:drain()'},
        [('lua', '"tea.cup"')],
    ),
    'a.zig': (
        """//! A house of tea.
const std = @import("std");
const cup = @import("cup.zig");

/// Holds tea.
pub const Pot = struct {
    size: u32 = 2,

    /// Pours into a cup.
    pub fn pour(self: *Pot, c: cup.Cup) !void {
        _ = c;
    }

    const Lid = enum { open, shut };
};

pub fn List(comptime T: type) type {
    return struct {
        items: []T,
        pub fn append(self: *@This(), item: T) void { _ = item; }
    };
}

fn brew(leaf: []const u8) []const u8 {
    return leaf;
}
const Kind = union(enum) { green, black: u8 };
test "it pours" {
    try std.testing.expect(true);
}
""",
        {'Pot': 'struct', 'Pot.pour': 'method', 'Pot.Lid': 'enum', 'List': 'struct', 'List.append': 'method', 'brew': 'function', 'Kind': 'union', 'it pours': 'test'},
        {'Pot': 'pub const Pot — Holds tea. Members: pour, Lid.', 'Pot.pour': 'pub fn pour(self: *Pot, c: cup.Cup) !void — Pours into a cup.', 'List': 'pub fn List(comptime T: type) type. Members: append.'},
        [('zig', '"std"'), ('zig', '"cup.zig"')],
    ),
    'a.pl': (
        """#!/usr/bin/perl
# A house of tea.
use strict;
use Tea::Cup qw(fill);
require "tea/leaf.pl";

package Tea::Pot;

our $VERSION = '1.0';

=head2 pour( $cup )

Pours into a cup. Slowly.

=cut

sub pour {
    my ($self, $cup) = @_;
    return $cup;
}

# Brews.
sub brew($leaf) { return $leaf }

package Tea::Lid {
    sub lift { 1 }
}
1;
__END__
text
""",
        {'pour': 'function', 'brew': 'function', 'Tea.Lid': 'module', 'Tea.Lid.lift': 'method'},
        {'pour': 'sub pour — Pours into a cup.', 'brew': 'sub brew($leaf) — Brews.'},
        [('perl', 'strict'), ('perl', 'Tea::Cup'), ('perl', '"tea/leaf.pl"')],
    ),
    'a.jl': (
        '''module Tea
using Base: show
import Dates
include("cup.jl")

"""
    Pot(size)

Holds tea.
"""
mutable struct Pot{T} <: Vessel
    size::T
end

abstract type Vessel end

# Pours into a cup.
function pour(p::Pot, n::Int=1)::Int
    return n
end

boil(ml) = 2ml

Base.show(io::IO, p::Pot) = print(io, "pot")

"Brews."
macro brew(leaf)
    leaf
end
const LIMIT = 3
module Lid
lift() = 1
end
end
''',
        {'Tea': 'module', 'Tea.Pot': 'struct', 'Tea.Vessel': 'type', 'Tea.pour': 'method', 'Tea.boil': 'method', 'Tea.Base.show': 'method', 'Tea.brew': 'macro', 'Tea.Lid': 'module', 'Tea.Lid.lift': 'method'},
        {'Tea.Pot': 'mutable struct Pot{T} <: Vessel — Holds tea.', 'Tea.pour': 'function pour(p::Pot, n::Int=1)::Int — Pours into a cup.', 'Tea.boil': 'boil(ml)'},
        [('julia', '"cup.jl"')],
    ),
    'a.ml': (
        """(** A house of tea. *)
open Tea_cup
module Map = Stdlib.Map

(** Holds tea. *)
type pot = { size : int; leaf : string }

exception Spill of string

(** Pours into a cup. *)
let pour (p : pot) ~cup n =
  let inner = n in
  inner

let rec even n = n = 0 || odd (n - 1)
and odd n = n <> 0 && even (n - 1)

let limit = 3

module Lid = struct
  let lift x = x
  type t = int
end

module type BREWER = sig
  val brew : string -> string
end

module Make (B : BREWER) = struct
  let go () = B.brew "x"
end

class kettle = object
  method boil = 100
end
let () = print_endline "hi"
""",
        {'pot': 'type', 'Spill': 'exception', 'pour': 'function', 'even': 'function', 'odd': 'function', 'Lid': 'module', 'Lid.lift': 'method', 'Lid.t': 'type', 'BREWER': 'interface', 'BREWER.brew': 'method', 'Make': 'module', 'Make.go': 'method', 'kettle': 'class', 'kettle.boil': 'method'},
        {'pour': 'let pour (p : pot) ~cup n — Pours into a cup.', 'Lid': 'module Lid. Members: lift, t.', 'pot': 'type pot — Holds tea.'},
        [('ocaml', 'Tea_cup'), ('ocaml', 'Stdlib'), ('ocaml', 'B')],
    ),
    'a.mli': (
        """(** Pours into a cup. *)
val pour : pot -> int -> int

val drain : pot -> unit
(** Empties it. *)

type t
external brew : int -> int = "brew"
""",
        {'pour': 'function', 'drain': 'function', 't': 'type', 'brew': 'function'},
        {'pour': 'val pour : pot -> int -> int — Pours into a cup.', 'drain': 'val drain : pot -> unit — Empties it.'},
        [],
    ),
    'a.sql': (
        """-- Tables of the house.
-- Cups of tea.
CREATE TABLE IF NOT EXISTS shop.cups (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL
);

CREATE INDEX cups_name ON shop.cups (name);

/* Those that are full. */
CREATE VIEW full_cups AS
SELECT * FROM shop.cups WHERE id > 3;

CREATE OR REPLACE FUNCTION pour(cup INT) RETURNS INT AS $$
BEGIN
  RETURN cup;
END;
$$ LANGUAGE plpgsql;

CREATE TYPE kind AS ENUM ('green', 'black');
CREATE TRIGGER spill BEFORE UPDATE ON cups FOR EACH ROW EXECUTE FUNCTION pour();
INSERT INTO shop.cups VALUES (1, 'x');
""",
        {'shop.cups': 'table', 'cups_name': 'index', 'full_cups': 'view', 'pour': 'function', 'kind': 'type', 'spill': 'trigger'},
        {'shop.cups': 'CREATE TABLE IF NOT EXISTS shop.cups (id INTEGER PRIMARY KEY, name TEXT NOT NULL) — Tables of the house.', 'pour': 'CREATE OR REPLACE FUNCTION pour(cup INT) RETURNS INT'},
        [],
    ),
    'a.tf': (
        """# A house of tea.
terraform {
  required_version = ">= 1.0"
}

variable "size" {
  type    = number
  default = 2
}

# Holds tea.
resource "aws_instance" "pot" {
  ami = "x"
  lifecycle {
    create_before_destroy = true
  }
}

module "cup" {
  source = "./cup"
}

locals {
  leaf = "green"
}
output "leaf" { value = local.leaf }
""",
        {'terraform': 'block', 'size': 'block', 'aws_instance.pot': 'block', 'cup': 'block', 'locals': 'block', 'leaf': 'block'},
        {'aws_instance.pot': 'resource "aws_instance" "pot" — Holds tea.', 'size': 'variable "size"'},
        [('hcl', '"./cup"')],
    ),
}  # fmt: skip


def outlined(name: str, text: str) -> Outline:
    return Code().outline(SourceFile(name, text.encode()))


def every(parts: Iterable[OutlinePart]) -> list[OutlinePart]:
    return [part for top in parts for part in (top, *every(top.parts))]


def owned(file: SourceFile, parts: Iterable[OutlinePart]) -> dict[int, str]:
    """Return the leaf of each line that has one; none has two."""
    owners: dict[int, str] = {}
    for part in every(parts):
        if part.parts:
            continue
        for first, last in part.ranges or ((part.start_line, part.end_line),):
            assert 1 <= first <= last <= len(file.lines)
            for line in range(first, last + 1):
                assert line not in owners, (line, owners[line], part.id)
                owners[line] = part.id
    return owners


@pytest.mark.parametrize("name", SAMPLES)
def test_definitions_with_their_types(name: str) -> None:
    text, types, _, _ = SAMPLES[name]
    result = {
        part.title: part.attributes["type"]
        for part in every(outlined(name, text).parts)
        if part.kind == "definition"
    }
    assert result == types | {
        title: result[title] for title in result if title not in types and "companion" in title
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_descriptions_are_signatures_and_first_sentences_of_comments(name: str) -> None:
    text, _, descriptions, _ = SAMPLES[name]
    found = {part.title: part.description for part in every(outlined(name, text).parts)}
    assert {title: found[title] for title in descriptions} == descriptions


@pytest.mark.parametrize("name", SAMPLES)
def test_imports_are_references(name: str) -> None:
    text, _, _, references = SAMPLES[name]
    assert list(outlined(name, text).references) == references


@pytest.mark.parametrize("name", SAMPLES)
def test_no_line_has_two_leaves_and_what_says_something_has_one(name: str) -> None:
    text = SAMPLES[name][0]
    file = SourceFile(name, text.encode())
    lines = owned(file, Code().outline(file).parts)
    missing = [line for n, line in enumerate(file.lines, start=1) if line.strip() and n not in lines]
    trivial = (
        "import ",
        "package ",
        "using ",
        "use ",
        "namespace ",
        "//",
        "/*",
        "*",
        "#",
        "{",
        "}",
        "@",
        "module ",
        "end",
        "<?",
        "--",
    )
    heads = {part.start_line for part in every(Code().outline(file).parts) if part.parts}
    missing = [line for line in missing if not line.strip().startswith(trivial)]
    assert all(any(line in file.lines[head - 1 : head + 12] for head in heads) for line in missing), missing


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("cut", [0.35, 0.6, 0.85])
def test_a_syntax_error_does_not_lose_the_file(name: str, cut: float) -> None:
    text = SAMPLES[name][0]
    broken = text[: int(len(text) * cut)] + "\n(((\n"
    file = SourceFile(name, broken.encode())
    outline = Code().outline(file)
    assert outline.description
    lines = owned(file, outline.parts)
    assert not outline.parts or len(file.lines) in lines or file.lines[-1] == "((("
    assert not outline.problem


@given(
    st.sampled_from(sorted(SAMPLES)),
    st.lists(st.tuples(st.integers(0, 900), st.sampled_from("{}()\"'/*\n#<x")), max_size=8),
)
@example("a.scala", [(9, "{")])
def test_no_line_has_two_leaves_whatever_the_text(name: str, edits: list[tuple[int, str]]) -> None:
    text = SAMPLES[name][0]
    for at, char in edits:
        text = text[: at % len(text)] + char + text[at % len(text) :]
    file = SourceFile(name, text.encode())
    parts = Code().outline(file).parts
    owned(file, parts)
    ids = [part.id for part in every(parts)]
    assert len(ids) == len(set(ids))


def test_what_is_left_of_a_file_and_a_class_is_a_leaf() -> None:
    parts = {part.id: part for part in every(outlined("a.js", SAMPLES["a.js"][0]).parts)}
    rest = parts["::<file>"]
    assert rest.title == "a.js (file level)"
    assert rest.ranges[0] == (1, 3)
    assert parts["::Pot.<rest>"].start_line == 10


def test_clauses_of_one_function_are_one_definition() -> None:
    """One with documentation of its own is another function of the same name."""
    text = """defmodule Tea do
  def pour(0), do: :none

  def pour(n) when n > 9 do
    :much
  end

  # Pours two.
  def pour(a, b), do: a + b
end
"""
    spans = {part.title: (part.start_line, part.end_line) for part in every(outlined("a.ex", text).parts)}
    assert spans["Tea.pour"] == (2, 6)
    assert spans["Tea.pour@2"] == (8, 9)


def test_a_definition_that_returns_a_type_holds_its_members() -> None:
    parts = {part.id: part for part in every(outlined("a.zig", SAMPLES["a.zig"][0]).parts)}
    assert parts["::List"].attributes["type"] == "struct"
    assert parts["::List.append"].start_line == 20


def test_a_macro_alone_on_its_line_hides_nothing() -> None:
    text = (
        "G_BEGIN_DECLS\n\nstruct cup\n{\n  int size;\n};\n\nint brew(void)\n{\n  return 1;\n}\nG_END_DECLS\n"
    )
    assert [part.title for part in outlined("a.c", text).parts if part.kind == "definition"] == [
        "cup",
        "brew",
    ]


def test_minified_code_is_plain_text() -> None:
    outline = outlined("a.min.js", "function a(){};" * 400)
    assert outline.parts == () and outline.attributes["language"] == "javascript"


@pytest.mark.parametrize(
    ("path", "head", "language"),
    [
        ("x/a.h", b"struct a;", "c"),
        ("x/a.h", b"#pragma once\nnamespace tea {", "c++"),
        ("run", b"#!/usr/bin/env bash\n", "shell"),
        ("run", b"#!/usr/bin/python3\n", None),
        ("Rakefile", b"", "ruby"),
        ("run", b"#!/usr/bin/perl -w\n", "perl"),
        ("a.unknown", b"", None),
        ("go", b"text", None),
    ],
)
def test_the_language_of_a_file(path: str, head: bytes, language: str | None) -> None:
    found = language_of(path, head)
    assert (found.name if found else None) == language


def test_without_grammars_no_file_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Code().version
    monkeypatch.setattr(code, "installed_spec", lambda name: None)
    for cached in (code.installed, code._by_suffix, code._by_name, code._by_file):
        cached.cache_clear()
    try:
        assert not Code().recognises("a.js", b"")
        assert Code().version != before
        lacking = code.missing()
        assert sum(lacking.values(), []) == [  # noqa: RUF017
            language.name for extra in lacking for language in LANGUAGES if language.extra == extra
        ]
        assert set(lacking) == {"languages", "more-languages"}
    finally:
        monkeypatch.undo()
        for cached in (code.installed, code._by_suffix, code._by_name, code._by_file):
            cached.cache_clear()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wide.js", "~~~\n" * 75_000),
        ("deep.rb", ".. a::\n" * 20_000),
        ("climbed.java", "a::\n\n  b\n" * 15_000),
    ],
)
def test_what_is_no_code_is_read_as_text_in_good_time(name: str, text: str) -> None:
    """Each took one to three minutes: queries take the square of how wide an error is, or how deep a tree."""
    outline = Code().outline(SourceFile(name, text.encode()))
    assert outline.parts
    assert "read as plain text" in outline.problem


def test_a_file_that_takes_much_memory_to_parse_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "PARSE_BYTES", 50_000_000)
    peaks = itertools.count(0, 60_000_000)  # the process of the tests had more before
    monkeypatch.setattr(code, "resident_bytes", lambda: next(peaks))
    text = "".join(" " * depth + "if x:\n" for depth in range(900))
    outline = Code().outline(SourceFile("a.kt", text.encode()))
    assert outline.problem == "read as plain text: it takes more than 10 seconds or 50 MB to parse"


def test_what_a_parser_asked_for_again_and_again_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 60 KB that no parser gets through left 300 MB in the process: each part that it was ever given."""
    monkeypatch.setattr(code, "PARSE_S", 1.0)
    before = resident_bytes()
    for unit in ("===\n", "a,b\n", "=begin\n"):
        Code().outline(SourceFile("a.kt", (unit * (60_000 // len(unit))).encode()))
    assert resident_bytes() - before < 60_000_000


@pytest.mark.skipif(language_of("a.pl", b"") is None, reason="no grammar of Perl")
def test_a_file_is_not_copied_at_each_of_its_words() -> None:
    class Counted(bytes):
        copied = 0

        def __getitem__(self, at: Any) -> Any:
            part = super().__getitem__(at)
            Counted.copied += len(part)
            return part

    language = language_of("a.pl", b"")
    assert language is not None
    data = Counted(b"sub f { my $x = shift; return $x + 1 }\n" * 3_000)
    tree = code._parse(language, data)
    assert tree is not None and len(tree.root_node.children) == 3_000
    assert Counted.copied < 1_000 * len(data)
