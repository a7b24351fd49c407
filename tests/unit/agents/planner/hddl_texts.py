"""Small domains and problems for the tests."""

from __future__ import annotations

DELIVERY = """
(define (domain Delivery)
  (:requirements :typing :hierarchy :negative-preconditions :equality)
  (:types truck parcel - thing  place truck - object  thing)
  (:constants Depot - place)
  (:predicates (at ?t - thing ?p - place) (in ?x - parcel ?t - truck) (road ?a ?b - place) (full ?t - truck))
  (:task deliver :parameters (?x - parcel ?to - place))
  (:task go :parameters (?t - truck ?to - place))
  (:method by-truck
    :parameters (?x - parcel ?to ?from - place ?t - truck)
    :task (deliver ?x ?to)
    :ordered-subtasks (and (go ?t ?from) (load ?x ?t ?from) (go ?t ?to) (unload ?x ?t ?to)))
  (:method there :parameters (?t - truck ?to - place) :task (go ?t ?to) :precondition (at ?t ?to) :subtasks ())
  (:method on
    :parameters (?t - truck ?to ?via - place) :task (go ?t ?to)
    :precondition (not (at ?t ?to))
    :subtasks (and (first (go ?t ?via)) (then (drive ?t ?via ?to)))
    :ordering (< first then))
  (:action drive
    :parameters (?t - truck ?a ?b - place)
    :precondition (and (at ?t ?a) (road ?a ?b) (not (= ?a ?b)))
    :effect (and (not (at ?t ?a)) (at ?t ?b)))
  (:action load
    :parameters (?x - parcel ?t - truck ?p - place)
    :precondition (and (at ?x ?p) (at ?t ?p) (not (full ?t)))
    :effect (and (not (at ?x ?p)) (in ?x ?t) (full ?t)))
  (:action unload
    :parameters (?x - parcel ?t - truck ?p - place)
    :precondition (and (in ?x ?t) (at ?t ?p))
    :effect (and (at ?x ?p) (not (in ?x ?t)) (not (full ?t)))))
"""

TWO_PARCELS = """
(define (problem two) (:domain delivery)
  (:objects Park Harbour - place  red - truck  a b - parcel)
  (:htn :parameters () :subtasks (and (deliver a Harbour) (deliver b Park)) :ordering ())
  (:init (at red Depot) (at a Depot) (at b Harbour) (road Depot Park) (road Park Depot) (road Park Harbour)
         (road Harbour Park))
  (:goal (and (at a Harbour) (at b Park))))
"""


def tiny(
    body: str, *, predicates: str = "(p ?x) (q)", network: str = "(t)", init: str = "", goal: str = "()"
) -> tuple[str, str]:
    """Return a domain and a problem with the objects `a` and `b` of no type."""
    domain = f"(define (domain tiny) (:predicates {predicates})\n{body})"
    network = f"(:htn :subtasks {network})"
    problem = f"(define (problem one) (:objects a b) {network} (:init {init}) (:goal {goal}))"
    return domain, problem
