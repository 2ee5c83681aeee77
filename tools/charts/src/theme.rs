//! Colours, which follow the reader's light or dark mode. Shapes bear the light ones as attributes, and a style sheet replaces
//! them on dark pages.

use plotters::style::RGBColor;
use std::fmt::Write;

/// Letters that no plot needs anything of: what every system has.
pub const FONTS: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

/// Colours of the targets on white and on black: apart from each other for colour-blind readers too (after Okabe and Ito),
/// and with enough contrast for lines.
const TARGETS: [(RGBColor, &str); 6] = [
    (RGBColor(0x00, 0x68, 0xb5), "#62b6f5"),
    (RGBColor(0xc8, 0x50, 0x0a), "#ff9a52"),
    (RGBColor(0x00, 0x80, 0x5a), "#3ecf9f"),
    (RGBColor(0xa8, 0x47, 0x8a), "#e79acb"),
    (RGBColor(0x6b, 0x5b, 0x00), "#d9c95a"),
    (RGBColor(0x4b, 0x4b, 0x4b), "#b8b8b8"),
];

pub(crate) const INK: RGBColor = RGBColor(0x1f, 0x23, 0x28);
pub(crate) const SOFT: RGBColor = RGBColor(0x57, 0x60, 0x6a);
pub(crate) const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
pub(crate) const AREA: RGBColor = RGBColor(0xf6, 0xf8, 0xfa);
pub(crate) const GRID: RGBColor = RGBColor(0xd0, 0xd7, 0xde);
pub(crate) const FINE: RGBColor = RGBColor(0xe6, 0xea, 0xef);

/// What these are on black.
const REST: [(RGBColor, &str); 6] = [
    (INK, "#e6edf3"),
    (SOFT, "#9da7b3"),
    (PAPER, "#0d1117"),
    (AREA, "#161b22"),
    (GRID, "#30363d"),
    (FINE, "#21262d"),
];

/// The colour of a target's shapes. After the sixth the colours begin again, but for a shade that only a machine sees, so
/// that the shapes of a target can be told from all others'.
pub(crate) fn colour(target: usize) -> RGBColor {
    let RGBColor(red, green, blue) = TARGETS[target % TARGETS.len()].0;
    RGBColor(red, green, blue.wrapping_add((target / TARGETS.len()) as u8))
}

/// The colour of a text that belongs to a target, for the same reason.
pub(crate) fn ink(target: usize) -> RGBColor {
    let RGBColor(red, green, blue) = INK;
    RGBColor(red, green, blue.wrapping_add(1 + target as u8))
}

/// The style of plots with so many targets, for a page and for a file.
pub fn style(targets: usize) -> String {
    let mut text = format!(
        ".plot text{{font-family:{FONTS}}}.plot .hit{{fill:none;pointer-events:all}}.plot .pt.on .hit{{stroke:{};stroke-width:2}}",
        attribute(SOFT)
    );
    let mut pairs = REST.to_vec();
    for target in 0..targets {
        pairs.push((colour(target), TARGETS[target % TARGETS.len()].1));
        pairs.push((ink(target), REST[0].1));
    }
    text.push_str("@media screen and (prefers-color-scheme:dark){");
    for (light, dark) in pairs {
        let light = attribute(light);
        let _ = write!(
            text,
            ".plot [fill=\"{light}\"]{{fill:{dark}}}.plot [stroke=\"{light}\"]{{stroke:{dark}}}"
        );
    }
    text.push('}');
    text
}

/// A rule by which the unchecked box `show-N` hides a target's shapes and their tips; no script is needed for it.
pub fn hiding(target: usize) -> String {
    let hidden = format!("body:has(#show-{target}:not(:checked)) main .plot ");
    let (colour, ink) = (attribute(colour(target)), attribute(ink(target)));
    format!(
        "{hidden}[fill=\"{colour}\"],{hidden}[stroke=\"{colour}\"],{hidden}[fill=\"{ink}\"],{hidden}.s{target}{{display:none}}"
    )
}

/// A colour as `plotters` writes it.
fn attribute(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// A text made safe for HTML and SVG, in content and in quoted attributes. Characters that XML forbids are left out.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_target_has_a_colour_of_its_own_and_a_rule_for_dark_pages() {
        let colours: BTreeSet<String> = (0..20)
            .flat_map(|t| [attribute(colour(t)), attribute(ink(t))])
            .collect();
        assert_eq!(colours.len(), 40);
        let style = style(20);
        assert!(colours.iter().all(|c| style.contains(&format!("[fill=\"{c}\"]"))));
        assert!(hiding(7).contains(&attribute(colour(7))));
    }

    #[test]
    fn texts_are_safe_in_content_and_attributes() {
        assert_eq!(
            escape("<a href='x'>&\"\u{1b}"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;"
        );
    }
}
