//! The file of credentials that the tools of Amazon keep: sections by profile, with a key and its secret.

use crate::connect::Variables;
use std::fmt;
use std::path::{Path, PathBuf};

/// The keys of one profile.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) key_id: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Profile({})", self.key_id)
    }
}

impl Profile {
    /// Reads the profile that the variables choose; `None` if there is no such file or profile.
    pub(crate) fn chosen(variables: &Variables) -> Option<Self> {
        let at_home = || Some(Path::new(variables.get("HOME")?).join(".aws/credentials"));
        let path = variables.get("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from).or_else(at_home)?;
        profile(&std::fs::read_to_string(path).ok()?, variables.get("AWS_PROFILE").unwrap_or("default"))
    }
}

/// Finds a profile in the text of the file.
fn profile(text: &str, name: &str) -> Option<Profile> {
    let heading = |line: &str| Some(line.strip_prefix('[')?.strip_suffix(']')?.trim().to_owned());
    let lines = text.lines().map(str::trim);
    let section = lines.skip_while(|line| heading(line).as_deref() != Some(name)).skip(1);
    let settings: Vec<(&str, &str)> = section
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    let value = |wanted| settings.iter().find(|(key, _)| *key == wanted).map(|(_, value)| (*value).to_owned());
    Some(Profile {
        key_id: value("aws_access_key_id")?,
        secret: value("aws_secret_access_key")?,
        token: value("aws_session_token"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=S=1\n\n[ work ]\n\
                        aws_access_key_id=B\naws_secret_access_key = T\naws_session_token = U\n[broken]\nx=y\n";

    #[test]
    fn a_profile_is_found_by_its_name() {
        let default = profile(FILE, "default").unwrap();
        assert_eq!((default.key_id.as_str(), default.secret.as_str(), default.token), ("A", "S=1", None));
        assert_eq!(profile(FILE, "work").unwrap().token.as_deref(), Some("U"));
        assert_eq!((profile(FILE, "broken"), profile(FILE, "other")), (None, None));
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", profile(FILE, "work").unwrap()), "Profile(B)");
    }
}
