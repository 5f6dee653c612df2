//! How a parameter states its name, meaning, range and default: once.
//!
//! A struct written inside [`params!`](crate::params!) gets its `Default`, a table of [`ParamSpec`]s and a checked
//! [`Params::set`]. The command line's help, the TypeScript option types and every check read that table.

use crate::error::{Error, ErrorCode, Result};

/// A value on its way into a parameter, as JSON or a command line knows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A truth value.
    Bool(bool),
    /// A text: also how a command line hands in numbers and truth values.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(v) => write!(f, "{v}"),
            Self::Bool(v) => write!(f, "{v}"),
            Self::Text(v) => write!(f, "\"{v}\""),
        }
    }
}

/// What values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A whole number in the range.
    Integer {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// A number in the range.
    Number {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// True or false.
    Bool,
    /// One of these texts.
    Choice(&'static [&'static str]),
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer { min, max } => write!(f, "an integer from {min} to {max}"),
            // The outermost numbers of f32 stand for "no bound": their digits would tell a reader nothing.
            Self::Number { min, max } if *min <= f64::from(f32::MIN) && *max >= f64::from(f32::MAX) => {
                f.write_str("a finite number")
            }
            Self::Number { min, max } if *max == f64::MAX => write!(f, "a number of at least {min}"),
            Self::Number { min, max } => write!(f, "a number from {min} to {max}"),
            Self::Bool => f.write_str("true or false"),
            Self::Choice(all) => write!(f, "one of {}", all.join(", ")),
        }
    }
}

/// The one home of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamSpec {
    /// Its name as users write it, with its group: `"tree.maxLeaf"`.
    pub name: &'static str,
    /// Meaning, unit, when to change it, cost.
    pub doc: String,
    /// The values it takes.
    pub kind: Kind,
    /// The default.
    pub default: Value,
}

impl ParamSpec {
    /// The error of a value that does not fit, in the one form all checks use.
    pub fn reject(&self, got: &Value) -> Error {
        Error::new(
            ErrorCode::InvalidArgument,
            format!("Expected {} for {} but received {got}", self.kind, self.name),
        )
    }

    fn number(&self, value: &Value) -> Result<f64> {
        let number = match value {
            Value::Number(v) => *v,
            Value::Text(t) => t.trim().parse().map_err(|_| self.reject(value))?,
            Value::Bool(_) => return Err(self.reject(value)),
        };
        let fits = match self.kind {
            Kind::Integer { min, max } => number.fract() == 0.0 && (min..=max).contains(&number),
            Kind::Number { min, max } => number.is_finite() && (min..=max).contains(&number),
            _ => false,
        };
        if fits { Ok(number) } else { Err(self.reject(value)) }
    }
}

/// A type that a parameter can have.
pub trait ParamType: Sized + Copy {
    /// Reads a value that must fit the parameter's kind.
    fn read(spec: &ParamSpec, value: &Value) -> Result<Self>;
    /// The value as users write it.
    fn show(self) -> Value;
}

macro_rules! number_params {
    ($($t:ty),+) => {$(
        impl ParamType for $t {
            fn read(spec: &ParamSpec, value: &Value) -> Result<Self> {
                spec.number(value).map(|v| v as $t)
            }
            fn show(self) -> Value {
                // The shortest text of an f32 keeps 0.1 from becoming 0.10000000149011612, but that of the largest
                // one lies beyond it.
                let short: f64 = self.to_string().parse().unwrap_or(self as f64);
                let fits = (<$t>::MIN as f64..=<$t>::MAX as f64).contains(&short);
                Value::Number(if fits { short } else { self as f64 })
            }
        }
    )+};
}
number_params!(u32, u64, usize, f32, f64);

impl ParamType for bool {
    fn read(spec: &ParamSpec, value: &Value) -> Result<Self> {
        match value {
            Value::Bool(v) => Ok(*v),
            Value::Text(t) if t == "true" => Ok(true),
            Value::Text(t) if t == "false" => Ok(false),
            _ => Err(spec.reject(value)),
        }
    }
    fn show(self) -> Value {
        Value::Bool(self)
    }
}

/// A set of parameters written with [`params!`](crate::params!).
pub trait Params: Default {
    /// The table of all parameters, in the order of the struct.
    fn specs() -> Vec<ParamSpec>;
    /// Sets one parameter by its full name. `Ok(false)` says that the set has no such name.
    fn try_set(&mut self, name: &str, value: &Value) -> Result<bool>;
    /// All values by full name.
    fn values(&self) -> Vec<(&'static str, Value)>;

    /// Sets one parameter; an unknown name is an error that names the nearest known one.
    fn set(&mut self, name: &str, value: &Value) -> Result<()> {
        if self.try_set(name, value)? {
            return Ok(());
        }
        let specs = Self::specs();
        let nearest = specs.iter().map(|s| s.name).min_by_key(|known| distance(known, name));
        let hint = match nearest {
            Some(known) if distance(known, name) <= 3 => format!("; did you mean {known}?"),
            _ => format!(": known are {}", specs.iter().map(|s| s.name).collect::<Vec<_>>().join(", ")),
        };
        Err(Error::new(ErrorCode::UnknownOption, format!("Unknown option {name}{hint}")))
    }

    /// Checks values that came in past [`Params::set`], as through the public fields.
    fn check(&self) -> Result<()> {
        let values = self.values();
        Self::from_pairs(values.iter().map(|(name, value)| (*name, value))).map(|_| ())
    }

    /// Defaults with these values set over them.
    fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Result<Self> {
        let mut params = Self::default();
        for (name, value) in pairs {
            params.set(name, value)?;
        }
        Ok(params)
    }
}

/// Edit distance, for "did you mean".
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Declares a choice: an enum whose variants have a text form.
#[macro_export]
macro_rules! choice {
    ($(#[doc = $doc:literal])* $vis:vis enum $name:ident { $($(#[doc = $vdoc:literal])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $name { $($(#[doc = $vdoc])* $variant),+ }
        impl $name {
            /// The texts of all variants.
            pub const TEXTS: &'static [&'static str] = &[$($text),+];
            /// All variants, in the order of their texts.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The text of this variant.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
        impl $crate::params::ParamType for $name {
            fn read(spec: &$crate::params::ParamSpec, value: &$crate::params::Value) -> $crate::error::Result<Self> {
                match value {
                    $($crate::params::Value::Text(t) if t == $text => Ok(Self::$variant),)+
                    _ => Err(spec.reject(value)),
                }
            }
            fn show(self) -> $crate::params::Value {
                $crate::params::Value::Text(self.as_str().to_owned())
            }
        }
    };
}

/// Declares a struct of parameters. Each field: doc comment, name, type, text name, default, kind.
///
/// ```
/// use aquila::params::{Kind, Params, Value};
/// aquila::params! {
///     /// How deep to dig.
///     pub struct Digging {
///         /// Metres below ground.
///         pub depth: u32 = 3, "dig.depth", Kind::Integer { min: 1.0, max: 100.0 };
///     }
/// }
/// let mut d = Digging::default();
/// d.set("dig.depth", &Value::Number(7.0)).unwrap();
/// assert_eq!(d.depth, 7);
/// let e = d.set("dig.depth", &Value::Number(0.0)).unwrap_err();
/// assert_eq!(e.message(), "Expected an integer from 1 to 100 for dig.depth but received 0");
/// assert!(d.set("dig.dept", &Value::Number(1.0)).unwrap_err().message().contains("did you mean dig.depth"));
/// ```
#[macro_export]
macro_rules! params {
    ($(#[doc = $doc:literal])* pub struct $name:ident {
        $($(#[doc = $fdoc:literal])* pub $field:ident: $t:ty = $default:expr, $text:literal, $kind:expr;)+
    }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $($(#[doc = $fdoc])* pub $field: $t),+ }
        impl Default for $name {
            fn default() -> Self { Self { $($field: $default),+ } }
        }
        impl $crate::params::Params for $name {
            fn specs() -> Vec<$crate::params::ParamSpec> {
                vec![$($crate::params::ParamSpec {
                    name: $text,
                    doc: [$($fdoc),*].iter().map(|l| l.trim()).collect::<Vec<_>>().join(" "),
                    kind: $kind,
                    default: $crate::params::ParamType::show({ let d: $t = $default; d }),
                }),+]
            }
            fn try_set(&mut self, name: &str, value: &$crate::params::Value) -> $crate::error::Result<bool> {
                let specs = <Self as $crate::params::Params>::specs();
                let Some(spec) = specs.iter().find(|s| s.name == name) else { return Ok(false) };
                match name {
                    $($text => self.$field = $crate::params::ParamType::read(spec, value)?,)+
                    _ => return Ok(false),
                }
                Ok(true)
            }
            fn values(&self) -> Vec<(&'static str, $crate::params::Value)> {
                vec![$(($text, $crate::params::ParamType::show(self.$field))),+]
            }
        }
    };
}
