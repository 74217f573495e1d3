//! Setters of options: `Options::default().with_this(..).with_that(..)`.

/// Makes a setter for each field named; it returns the options with the field set.
macro_rules! setters {
    ($options:ident { $($setter:ident($field:ident: $type:ty)),+ $(,)? }) => {
        impl $options {
            $(
                #[doc = concat!("Returns these with [`Self::", stringify!($field), "`] set.")]
                #[must_use]
                pub fn $setter(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}

pub(crate) use setters;
