//! Sizes in bytes, as people write and read them.

/// The units, largest first.
const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Parses `512MiB`, `2 GiB`, `100M` or a number of bytes.
///
/// ```
/// use mainstem_guard::size;
///
/// assert_eq!(size::parse("2 GiB").map(size::show).as_deref(), Some("2 GiB"));
/// assert_eq!(size::parse("large"), None);
/// ```
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let unit = unit.trim().to_ascii_uppercase();
    if matches!(&*unit, "" | "B") {
        return Some(number);
    }
    let (_, factor) = UNITS.iter().find(|(name, _)| {
        let name = name.to_ascii_uppercase();
        unit == name || unit == name[..1] || unit == format!("{}B", &name[..1])
    })?;
    number.checked_mul(*factor)
}

/// Formats a size in the largest unit that divides it.
pub fn show(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
    unit.map_or_else(|| format!("{bytes} bytes"), |(name, factor)| format!("{} {name}", bytes / factor))
}

#[cfg(test)]
mod tests;
