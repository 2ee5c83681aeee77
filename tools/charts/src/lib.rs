//! Charts for reports, as SVG for a page or a file: what is drawn where, with `plotters` doing the drawing.
//!
//! Invariants, as absences: no file, no network, no knowledge of what is measured.
//!
//! Reading order: a [`drawing`] has [`panel`]s with lines or [`bars`]; [`axis`] and [`scale`] place values, [`theme`] has colours
//! for light and dark pages, [`shown`] numbers for people.

pub mod axis;
pub mod bars;
pub mod drawing;
pub mod panel;
mod pencil;
pub mod scale;
pub mod shown;
pub mod theme;
