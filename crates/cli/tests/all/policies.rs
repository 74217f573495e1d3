//! Policies that the repository keeps for its series, and `forget --policy`, which applies them.

use crate::common::Sandbox;
use serde_json::json;

/// Two series of three snapshots each, `often` and `rare`.
fn two_series() -> Sandbox {
    let sandbox = Sandbox::new();
    for version in ["one", "two", "three"] {
        sandbox.write("file", version);
        for series in ["often", "rare"] {
            sandbox.backup(&["--series", series]);
        }
    }
    sandbox
}

fn counts(sandbox: &Sandbox) -> [usize; 2] {
    ["often", "rare"].map(|series| {
        let list = sandbox.run(&["snapshots", "--json", "--series", series]).ok().json();
        list.as_array().expect("a list").len()
    })
}

#[test]
fn each_series_is_forgotten_by_its_own_policy() {
    let sandbox = two_series();
    sandbox.run(&["policy", "set", "--series", "often", "--keep-last", "1"]).ok();
    let dry = sandbox.run(&["forget", "--policy", "--dry-run"]).ok().stdout;
    assert!(dry.contains("Applying Policy to (series [often]): keep 1 latest snapshot"), "{dry}");
    assert!(dry.contains("series 'rare' has no policy: all of its snapshots stay"), "{dry}");
    assert_eq!(counts(&sandbox), [3, 3]);
    sandbox.run(&["forget", "--policy"]).ok();
    assert_eq!(counts(&sandbox), [1, 3]);
    sandbox.run(&["policy", "set", "--keep-last", "2"]).ok();
    sandbox.run(&["forget", "--policy"]).ok();
    assert_eq!(counts(&sandbox), [1, 2], "the policy of all others is for those without one of their own");
}

#[test]
fn policies_are_listed_replaced_and_removed() {
    let sandbox = two_series();
    assert!(sandbox.run(&["policy", "list"]).ok().stdout.contains("'silt policy set'"));
    sandbox.run(&["policy", "set", "--keep-daily", "7", "--keep-tag", "a,b"]).ok();
    sandbox.run(&["policy", "set", "--series", "rare", "--keep-last", "3"]).ok();
    let replaced = sandbox.run(&["policy", "set", "--series", "rare", "--keep-within", "1y"]).ok().stdout;
    assert_eq!(replaced, "series 'rare': keep all snapshots within 1y of the newest\n");
    let expected = json!([
        { "series": null, "rules": ["daily 7", "tag a,b"] },
        { "series": "rare", "rules": ["within 1y"] },
    ]);
    assert_eq!(sandbox.run(&["policy", "list", "--json"]).ok().json(), expected);
    let table = sandbox.run(&["policy", "list"]).ok().stdout;
    assert!(table.contains("all other series  keep 7 daily snapshots and all snapshots with tags [a, b]\n"), "{table}");
    sandbox.run(&["policy", "remove", "--series", "rare"]).ok();
    let absent = sandbox.run(&["policy", "remove", "--series", "rare"]).exits(1).stderr;
    assert!(absent.contains("keeps no policy for series 'rare'"), "{absent}");
    sandbox.run(&["policy", "remove"]).ok();
    assert_eq!(sandbox.run(&["policy", "list", "--json"]).ok().json(), json!([]));
}

#[test]
fn what_would_be_a_mistake_is_refused_or_warned_of() {
    let sandbox = two_series();
    let none = sandbox.run(&["forget", "--policy"]).exits(1).stderr;
    assert!(none.contains("holds no policy") && none.contains("'silt policy set'"), "{none}");
    assert!(sandbox.run(&["policy", "set"]).exits(1).stderr.contains("no policy was specified"));
    assert!(sandbox.run(&["policy", "set", "--keep-last", "0"]).exits(1).stderr.contains("no policy was specified"));
    let broken = sandbox.run(&["policy", "set", "--keep-tag", "a\nlast 9"]).exits(1).stderr;
    assert!(broken.contains("a tag has an end of line in it"), "{broken}");
    let unknown = sandbox.run(&["policy", "set", "--series", "oftne", "--keep-last", "1"]).ok().stderr;
    assert!(unknown.contains("there is no series 'oftne' yet"), "{unknown}");
    sandbox.run(&["forget", "--policy", "--keep-last", "1"]).exits(1);
    sandbox.run(&["forget", "--policy", "--group-by", "host"]).exits(1);
    // Rules that keep none of what is there are a mistake, too.
    sandbox.run(&["policy", "set", "--keep-tag", "mistyped"]).ok();
    sandbox.run(&["forget", "--policy"]).exits(14);
    assert_eq!(counts(&sandbox), [3, 3]);
}
