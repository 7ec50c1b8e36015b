//! How large and how costly a schema can be.

/// A limit on schemas that come from callers, MCP servers and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaLimit {
    /// The schema's size as JSON.
    Bytes,
    /// How deep it is nested.
    Nesting,
    /// How many schemas it contains.
    Subschemas,
    /// How many patterns it contains.
    Patterns,
    /// The length of one pattern.
    PatternBytes,
    /// The size of one pattern once it is compiled.
    CompiledPattern,
    /// How many references and alternatives follow one another for a single value.
    Chain,
    /// How often its parts are applied to a single value.
    Steps,
    /// How often its parts are applied when a whole value is checked.
    Work,
}

impl SchemaLimit {
    /// Every limit.
    pub const ALL: [Self; 9] = [
        Self::Bytes,
        Self::Nesting,
        Self::Subschemas,
        Self::Patterns,
        Self::PatternBytes,
        Self::CompiledPattern,
        Self::Chain,
        Self::Steps,
        Self::Work,
    ];

    /// Returns its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "schema_bytes",
            Self::Nesting => "schema_nesting",
            Self::Subschemas => "schema_subschemas",
            Self::Patterns => "schema_patterns",
            Self::PatternBytes => "schema_pattern_bytes",
            Self::CompiledPattern => "schema_compiled_pattern",
            Self::Chain => "schema_chain",
            Self::Steps => "schema_steps",
            Self::Work => "schema_work",
        }
    }

    /// Returns its value.
    pub const fn value(self) -> usize {
        match self {
            Self::Bytes => 256 << 10,
            Self::Nesting => 64,
            Self::Subschemas => 4096,
            Self::Patterns => 64,
            Self::PatternBytes => 1024,
            Self::CompiledPattern => 64 << 10,
            Self::Chain => 64,
            Self::Steps => 10_000,
            Self::Work => 1_000_000,
        }
    }

    /// Returns its value with its unit.
    pub fn most(self) -> String {
        let unit = match self {
            Self::Bytes | Self::PatternBytes | Self::CompiledPattern => "bytes",
            Self::Nesting => "levels",
            Self::Subschemas => "schemas",
            Self::Patterns => "patterns",
            Self::Chain => "references and alternatives in a row",
            Self::Steps | Self::Work => "steps",
        };
        format!("{} {unit}", self.value())
    }
}
