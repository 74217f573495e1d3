//! Price lists: the one compiled in, which has well-known stores, and the user's `prices.toml`, which goes before it.

use crate::context::Context;
use crate::environment;
use crate::error::CliError;
use crate::render::Cost;
use crate::repository::place;
use serde::Deserialize;
use siltstone_engine::usage::{Prices, Usage};
use siltstone_remote::{Place, Service};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The list compiled in.
const PRESETS: &str = include_str!("prices.toml");
/// The user's list, in the program's configuration folder.
const FILE: &str = "prices.toml";
/// Ends of the hosts of stores, and the names of their prices.
const HOSTS: [(&str, &str); 4] = [
    (".amazonaws.com", "s3-standard"),
    (".backblazeb2.com", "b2"),
    (".r2.cloudflarestorage.com", "r2"),
    (".wasabisys.com", "wasabi"),
];

/// Prices of stores by name.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct PriceList {
    /// Moment at which they were noted, in words.
    noted: String,
    store: BTreeMap<String, Prices>,
}

/// Prices with where they come from.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Chosen {
    pub(crate) store: String,
    pub(crate) noted: String,
    pub(crate) prices: Prices,
}

/// Returns what a usage costs where the repository lies; `None` where nothing was counted.
///
/// # Errors
/// The user's list cannot be read, or prices are asked for that no list has.
pub(crate) fn cost(usage: &Usage, context: &Context) -> Result<Option<Cost>, CliError> {
    if *usage == Usage::default() {
        return Ok(None);
    }
    let set = || environment::variable("SILT_PRICES").map(|name| name.to_string_lossy().into_owned());
    let asked = context.options.prices.clone().or_else(set);
    let of_place = store_of(&place(&context.options)?).map(str::to_owned);
    let lists = [read_own()?, Some(parsed(PRESETS, FILE.into())?)];
    let lists: Vec<PriceList> = lists.into_iter().flatten().collect();
    let chosen = asked.clone().or(of_place).and_then(|store| find(&lists, &store));
    match (asked, &chosen) {
        (Some(store), None) => Err(CliError::NoPrices { store, known: known(&lists) }),
        _ => Ok(Some(Cost::new(*usage, chosen))),
    }
}

/// The name of the prices of a place.
fn store_of(place: &Place) -> Option<&'static str> {
    let Place::Bucket(bucket) = place else { return None };
    match &bucket.service {
        Service::Google => Some("gcs-standard"),
        Service::Azure => Some("azure-hot"),
        Service::S3 { endpoint } => {
            HOSTS.into_iter().find(|(host, _)| endpoint.ends_with(host)).map(|(_, store)| store)
        }
    }
}

fn find(lists: &[PriceList], store: &str) -> Option<Chosen> {
    let found = |list: &PriceList| {
        let prices = *list.store.get(store)?;
        Some(Chosen { store: store.to_owned(), noted: list.noted.clone(), prices })
    };
    lists.iter().find_map(found)
}

fn known(lists: &[PriceList]) -> String {
    let names: Vec<&str> = lists.iter().flat_map(|list| list.store.keys()).map(String::as_str).collect();
    names.join(", ")
}

/// The user's list, if there is one.
fn read_own() -> Result<Option<PriceList>, CliError> {
    let Some(path) = environment::config_folder().map(|folder| folder.join(FILE)) else { return Ok(None) };
    match std::fs::read_to_string(&path) {
        Ok(text) => parsed(&text, path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::PriceList { path, reason: error.to_string() }),
    }
}

fn parsed(text: &str, path: PathBuf) -> Result<PriceList, CliError> {
    toml::from_str(text).map_err(|error| CliError::PriceList { path, reason: error.message().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presets() -> PriceList {
        parsed(PRESETS, FILE.into()).expect("a list")
    }

    #[test]
    fn every_store_that_is_known_by_its_address_has_prices() {
        let places = [
            ("s3:https://s3.amazonaws.com/b", Some("s3-standard")),
            ("s3:https://s3.eu-central-1.amazonaws.com/b", Some("s3-standard")),
            ("s3:https://s3.us-west-002.backblazeb2.com/b", Some("b2")),
            ("s3:https://account.r2.cloudflarestorage.com/b", Some("r2")),
            ("s3:https://s3.wasabisys.com/b", Some("wasabi")),
            ("gs:b:/", Some("gcs-standard")),
            ("az:b:/", Some("azure-hot")),
            ("s3:https://minio.example.com/b", None),
            ("sftp:host:/x", None),
            ("/folder", None),
        ];
        for (address, expected) in places {
            let store = store_of(&Place::parse(address.as_ref()).expect("an address"));
            assert_eq!(store, expected, "{address}");
            assert!(store.is_none_or(|store| presets().store.contains_key(store)), "{address}");
        }
    }

    #[test]
    fn an_own_list_goes_before_that_compiled_in() {
        let own = parsed("noted = \"today\"\n[store.b2]\nput_1000 = 7", FILE.into()).expect("a list");
        let lists = [own, presets()];
        let chosen = find(&lists, "b2").expect("prices");
        assert_eq!((chosen.noted.as_str(), chosen.prices.put_1000, chosen.prices.received_gb), ("today", 7.0, 0.0));
        assert_eq!(find(&lists, "r2").expect("prices").noted, "2026-05");
        assert_eq!(find(&lists, "x"), None);
    }

    #[test]
    fn a_list_with_a_word_that_is_not_known_is_refused() {
        for text in ["noted = \"x\"\n[store.b2]\nput = 7", "[store.b2]", "noted = 1\n[store]", "x"] {
            let refused = parsed(text, "/p".into()).map(|_| ());
            assert!(matches!(refused, Err(CliError::PriceList { .. })), "{text}");
        }
    }
}
