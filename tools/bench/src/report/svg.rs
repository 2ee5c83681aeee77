//! SVG text, escaped; and the colours, which follow the reader's light or dark mode.

use std::fmt::Write as _;

/// Letters that no plot needs anything of: what every system has.
pub const FONTS: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

/// Colours of the targets on white: apart from each other for colour-blind readers too (after Okabe and Ito), and dark
/// enough for lines.
const LIGHT: [&str; 6] = ["#0068b5", "#c8500a", "#00805a", "#a8478a", "#6b5b00", "#4b4b4b"];
/// The same on black.
const DARK: [&str; 6] = ["#62b6f5", "#ff9a52", "#3ecf9f", "#e79acb", "#d9c95a", "#b8b8b8"];

/// How many colours there are; the next target begins again, with another marker.
pub const COLOURS: usize = LIGHT.len();

/// A piece of a drawing.
#[derive(Debug, Default, Clone)]
pub struct Svg {
    text: String,
}

/// Which end of a text its place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
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

/// About how wide a text is, in a sans-serif font of that size. Too wide rather than too narrow.
pub fn width_of(text: &str, size: f64) -> f64 {
    let units: f64 =
        text.chars()
            .map(|c| match c {
                'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | ':' | '/' | '|' | ' ' | '(' | ')' | '['
                | ']' => 0.36,
                'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.92,
                c if c.is_ascii_uppercase() => 0.7,
                _ => 0.6,
            })
            .sum();
    units * size
}

/// A text cut to a width, with an ellipsis where something is missing.
pub fn cut(text: &str, size: f64, width: f64) -> String {
    if width_of(text, size) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if width_of(&short, size) + 2.0 * size > width {
            break;
        }
        short.push(c);
    }
    format!("{}…", short.trim_end())
}

impl Svg {
    pub fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4]) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let _ = write!(
            self.text,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        );
    }

    pub fn line(&mut self, class: &str, [x1, y1, x2, y2]: [f64; 4]) {
        let _ = write!(
            self.text,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    /// A line through the points; a gap in it where two points are `None` apart is the caller's to make.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut d = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" });
        }
        let _ = write!(self.text, r#"<path class="{class}" d="{d}"/>"#);
    }

    pub fn label(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.text,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
            escape(text)
        );
    }

    /// Opens a group; `tip` is what pointing at it tells.
    pub fn open(&mut self, class: &str, tip: Option<&str>) {
        let _ = write!(self.text, r#"<g class="{class}">"#);
        if let Some(tip) = tip {
            let _ = write!(self.text, "<title>{}</title>", escape(tip));
        }
    }

    pub fn close(&mut self) {
        self.text.push_str("</g>");
    }

    /// A target's marker: another form for each of the first five, so that colour is not all that tells them apart.
    pub fn marker(&mut self, target: usize, (x, y): (f64, f64), size: f64) {
        let s = size;
        let class = format!("mark {}", colour_class(target));
        let mut polygon = |points: &[(f64, f64)]| {
            let list: Vec<String> = points
                .iter()
                .map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * s, y + dy * s))
                .collect();
            let _ = write!(
                self.text,
                r#"<polygon class="{class}" points="{}"/>"#,
                list.join(" ")
            );
        };
        match target % 5 {
            0 => {
                let _ = write!(
                    self.text,
                    r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{s:.1}"/>"#
                );
            }
            1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => polygon(&[(0.0, -1.3), (1.2, 0.9), (-1.2, 0.9)]),
            3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            _ => polygon(&[(0.0, 1.3), (1.2, -0.9), (-1.2, -0.9)]),
        }
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// The class that colours a target's shapes.
pub fn colour_class(target: usize) -> String {
    format!("c{}", target % COLOURS)
}

/// The class that shows or hides a target's shapes.
pub fn series_class(target: usize) -> String {
    format!("s{target}")
}

/// The style of plots, for one within the page and for one alone.
pub fn style() -> String {
    let mut text = format!(
        ".plot text{{font-family:{FONTS};font-size:12px;fill:#1f2328}}\
         .plot .small{{font-size:11px;fill:#57606a}}.plot .inside{{font-size:11px}}.plot .bold{{font-weight:600;font-size:13px}}\
         .plot .head{{font-weight:600;font-size:15px}}\
         .plot .bg{{fill:#ffffff}}.plot .area{{fill:#f6f8fa}}\
         .plot .grid{{stroke:#d0d7de;stroke-width:1}}.plot .fine{{stroke:#e6eaef;stroke-width:1}}\
         .plot .axis{{stroke:#57606a;stroke-width:1}}\
         .plot .line{{fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}}\
         .plot .dash{{stroke-dasharray:6 4;stroke-width:1.8}}.plot .thin{{stroke-width:1;opacity:.4}}\
         .plot .whisker{{fill:none;stroke-width:1.3;opacity:.75}}.plot .mark{{stroke:#ffffff;stroke-width:1}}\
         .plot .hit{{fill:none;pointer-events:all}}.plot .fail{{fill:none;stroke-width:2.2}}.plot .strip{{opacity:.28}}.plot .strip.even{{opacity:.5}}\
         .plot .range{{stroke:#1f2328;stroke-width:1.4;opacity:.7}}.plot .sample{{stroke:#57606a}}"
    );
    let colours = |text: &mut String, colours: &[&str; COLOURS]| {
        for (index, colour) in colours.iter().enumerate() {
            let _ = write!(
                text,
                ".plot .c{index}{{stroke:{colour}}}.plot .mark.c{index},.plot .bar.c{index},.plot .strip.c{index}\
                 {{fill:{colour}}}"
            );
        }
        // After the colours, which are as specific: a marker's and a bar's edge is not the target's colour.
        text.push_str(".plot .bar,.plot .strip{stroke:none}");
    };
    colours(&mut text, &LIGHT);
    text.push_str(".plot .mark{stroke:#ffffff}");
    text.push_str(
        "@media screen and (prefers-color-scheme:dark){.plot text{fill:#e6edf3}.plot .small{fill:#9da7b3}\
         .plot .bg{fill:#0d1117}.plot .area{fill:#161b22}.plot .grid{stroke:#30363d}.plot .fine{stroke:#21262d}\
         .plot .axis{stroke:#9da7b3}.plot .range{stroke:#e6edf3}.plot .sample{stroke:#9da7b3}",
    );
    colours(&mut text, &DARK);
    text.push_str(".plot .mark{stroke:#0d1117}}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_drawing() {
        let mut svg = Svg::default();
        svg.label(
            "x",
            (0.0, 0.0),
            Anchor::Start,
            "</text><script>alert('1')&\"\u{8}",
        );
        svg.open("g", Some("<b>"));
        svg.close();
        let text = svg.into_text();
        assert!(
            text.contains("&lt;/text&gt;&lt;script&gt;alert(&#39;1&#39;)&amp;&quot;<"),
            "{text}"
        );
        assert!(text.contains("<title>&lt;b&gt;</title>"));
    }

    #[test]
    fn a_long_text_is_cut_to_its_width() {
        assert_eq!(cut("short", 12.0, 200.0), "short");
        let long = cut(&"wide words ".repeat(20), 12.0, 100.0);
        assert!(long.ends_with('…') && width_of(&long, 12.0) <= 100.0, "{long}");
    }

    #[test]
    fn colours_repeat_where_there_are_more_targets_than_colours() {
        assert_eq!(colour_class(0), colour_class(COLOURS));
        assert_ne!(series_class(0), series_class(COLOURS));
        for index in 0..COLOURS {
            assert_eq!(style().matches(&format!(".plot .c{index}{{")).count(), 2);
        }
    }
}
