//! Several actors on one simulated disk whose calls are let through one at a time, in an order that a schedule says:
//! what only happens to two programs once in a thousand runs happens here for certain, and again when the schedule is
//! run again.
//!
//! **Model.** An actor is a closure in a thread of its own, with a [`Scheduled`] handle as a process of its own. It
//! stops before each call until the schedule lets it go on, then runs alone up to its next call. So what actors do to
//! each other depends on the order of calls alone. An actor may also be stopped for ever before a call: its process was
//! killed there.
//!
//! **Exploring.** At each moment the schedule chooses among the actors that wait. [`explore`] goes through all choices,
//! depth first, with at most [`Bounds::preemptions`] changes from an actor that could have gone on, and
//! [`Bounds::stops`] stopped ones. Nearly all known races need two such changes or fewer (Musuvathi and Qadeer,
//! PLDI'07); *n* calls with *p* changes are about *n*^*p* schedules. [`explore_at_random`] draws choices by seeds, for
//! programs too long for that.
//!
//! Programs that draw random names may make other calls when a schedule is run again; a choice that is no more is then
//! taken as the nearest there is.

use super::{Listing, ObjectMeta, ObjectName, SimulatedDisk, Storage, StorageError};
use crate::ids::SeriesId;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Work of an actor.
pub type Program<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Bounds within which schedules are varied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Changes from an actor that could have gone on to another one.
    pub preemptions: usize,
    /// Actors stopped for ever before one of their calls.
    pub stops: usize,
}

/// One order of calls, chosen while it runs.
#[derive(Debug)]
pub struct Schedule {
    bounds: Bounds,
    /// Choices to make first; beyond them the first of those there are, or one drawn.
    given: Vec<usize>,
    dice: Option<u64>,
    taken: Vec<Choice>,
    stage: Arc<Stage>,
}

/// A choice, and the number of options it was made among.
#[derive(Clone, Copy, Debug)]
struct Choice {
    chosen: usize,
    options: usize,
}

/// The handle of one actor: a process of its own on the disk. Calls before and after the schedule runs go straight
/// through.
#[derive(Debug)]
pub struct Scheduled {
    disk: SimulatedDisk,
    stage: Arc<Stage>,
    actor: usize,
}

#[derive(Default, Debug)]
struct Stage {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct State {
    is_running: bool,
    actors: Vec<Actor>,
    /// The calls let through, in their order, for messages.
    calls: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Actor {
    Running,
    Waiting,
    Stopped,
    Ended,
}

/// A step that may happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    GoOn(usize),
    Stop(usize),
}

/// Runs `trial` under every schedule within the bounds and returns how many there were. A trial makes a disk,
/// [handles](Schedule::handles), [runs](Schedule::run) its actors once and looks at what came of it.
pub fn explore(bounds: Bounds, mut trial: impl FnMut(&mut Schedule)) -> u64 {
    let (mut schedules, mut given) = (0, Some(Vec::new()));
    while let Some(choices) = given {
        let mut schedule = Schedule::new(bounds, choices, None);
        trial(&mut schedule);
        schedules += 1;
        given = schedule.next_choices();
    }
    schedules
}

/// Runs `trial` under schedules drawn by the seeds 1 to `schedules`.
pub fn explore_at_random(bounds: Bounds, schedules: u64, mut trial: impl FnMut(&mut Schedule)) {
    for seed in 1..=schedules {
        trial(&mut Schedule::new(bounds, Vec::new(), Some(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))));
    }
}

impl Schedule {
    fn new(bounds: Bounds, given: Vec<usize>, dice: Option<u64>) -> Self {
        Self { bounds, given, dice, taken: Vec::new(), stage: Arc::default() }
    }

    /// A handle for each of so many actors.
    pub fn handles<const ACTORS: usize>(&self, disk: &SimulatedDisk) -> [Arc<Scheduled>; ACTORS] {
        self.stage.lock().actors = vec![Actor::Running; ACTORS];
        std::array::from_fn(|actor| {
            Arc::new(Scheduled { disk: disk.another_process(), stage: Arc::clone(&self.stage), actor })
        })
    }

    /// Runs the programs of all actors to their ends, in the order of the handles.
    ///
    /// # Panics
    /// If an actor panics.
    pub fn run<const ACTORS: usize>(&mut self, programs: [Program<'_>; ACTORS]) {
        let stage = Arc::clone(&self.stage);
        stage.lock().is_running = true;
        std::thread::scope(|scope| {
            for (actor, act) in programs.into_iter().enumerate() {
                let stage = &stage;
                scope.spawn(move || {
                    let _end = EndOfActor { stage, actor };
                    act();
                });
            }
            self.direct(&stage);
        });
        stage.lock().is_running = false;
    }

    /// The calls of all actors in the order they were made, one a line.
    pub fn story(&self) -> String {
        self.stage.lock().calls.join("\n")
    }

    /// Lets one actor go on at a time until all have ended.
    fn direct(&mut self, stage: &Stage) {
        let (mut current, mut left) = (None, self.bounds);
        loop {
            let mut state = stage.lock_when(|state| !state.actors.contains(&Actor::Running));
            let options = options(&state.actors, current, left);
            let Some(step) = self.choose(&options) else {
                return;
            };
            match step {
                Step::GoOn(actor) => {
                    let could_go_on = current.is_some_and(|before| state.actors[before] == Actor::Waiting);
                    left.preemptions -= usize::from(could_go_on && current != Some(actor));
                    state.actors[actor] = Actor::Running;
                    current = Some(actor);
                }
                Step::Stop(actor) => {
                    left.stops -= 1;
                    state.actors[actor] = Actor::Stopped;
                    state.calls.push(format!("actor {actor} is stopped"));
                }
            }
            drop(state);
            stage.changed.notify_all();
        }
    }

    fn choose(&mut self, options: &[Step]) -> Option<Step> {
        let last = options.len().checked_sub(1)?;
        let chosen = match (self.given.get(self.taken.len()), &mut self.dice) {
            (Some(given), _) => (*given).min(last),
            (None, Some(dice)) => draw(dice, options.len()),
            (None, None) => 0,
        };
        self.taken.push(Choice { chosen, options: options.len() });
        options.get(chosen).copied()
    }

    /// The choices of the next schedule in depth-first order.
    fn next_choices(mut self) -> Option<Vec<usize>> {
        while self.taken.pop_if(|choice| choice.chosen + 1 == choice.options).is_some() {}
        self.taken.last_mut()?.chosen += 1;
        Some(self.taken.iter().map(|choice| choice.chosen).collect())
    }
}

/// Lists the steps that may happen next; first of all that the current actor goes on.
fn options(actors: &[Actor], current: Option<usize>, left: Bounds) -> Vec<Step> {
    let mut waiting: Vec<usize> = (0..actors.len()).filter(|actor| actors[*actor] == Actor::Waiting).collect();
    if let Some(current) = current.filter(|current| waiting.contains(current)) {
        waiting.retain(|actor| *actor != current && left.preemptions > 0);
        waiting.insert(0, current);
    }
    let stops = waiting.clone().into_iter().filter(|_| left.stops > 0).map(Step::Stop);
    waiting.iter().copied().map(Step::GoOn).chain(stops).collect()
}

/// A number below `limit`, which is not 0, by a `SplitMix64` generator (Steele, Lea, Flood, OOPSLA'14).
fn draw(state: &mut u64, limit: usize) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap_or(0)
}

impl Stage {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_when(&self, ready: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        self.changed.wait_while(self.lock(), |state| !ready(state)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the actor may make its call; `false` if it is stopped.
    fn wait_for_turn(&self, actor: usize, call: impl FnOnce() -> String) -> bool {
        let mut state = self.lock();
        if !state.is_running {
            return true;
        }
        if state.actors[actor] == Actor::Running {
            state.actors[actor] = Actor::Waiting;
            self.changed.notify_all();
        }
        drop(state);
        let mut state = self.lock_when(|state| state.actors[actor] != Actor::Waiting);
        let goes_on = state.actors[actor] == Actor::Running;
        if goes_on {
            let call = format!("actor {actor}: {}", call());
            state.calls.push(call);
        }
        goes_on
    }
}

/// Notes that an actor has ended, by a panic too.
struct EndOfActor<'s> {
    stage: &'s Stage,
    actor: usize,
}

impl Drop for EndOfActor<'_> {
    fn drop(&mut self) {
        self.stage.lock().actors[self.actor] = Actor::Ended;
        self.stage.changed.notify_all();
    }
}

impl Scheduled {
    fn in_turn<T>(
        &self,
        operation: &'static str,
        name: &dyn ToString,
        call: impl FnOnce(&SimulatedDisk) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        if self.stage.wait_for_turn(self.actor, || format!("{operation} {}", name.to_string())) {
            call(&self.disk)
        } else {
            Err(StorageError::Io {
                operation,
                name: name.to_string(),
                source: io::Error::other("the process was killed"),
            })
        }
    }
}

impl Storage for Scheduled {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        self.in_turn("read", name, |disk| disk.read(name, bytes_max))
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.in_turn("read", name, |disk| disk.read_range(name, offset, length))
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.in_turn("write", name, |disk| disk.put(name, bytes))
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.in_turn("sync", &"earlier writes", Storage::barrier)
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.in_turn("begin to create", name, |disk| disk.begin_create(name))?;
        self.in_turn("create", name, |disk| disk.create(name, bytes))
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.in_turn("delete", name, |disk| disk.delete(name))
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        self.in_turn("renew", name, |disk| disk.renew(name, before))
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        self.in_turn("list", &format!("{what:?}"), |disk| disk.list(what))
    }

    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        self.in_turn("remove unfinished files of", &series, |disk| disk.remove_unfinished(series, lease_last))
    }

    fn location(&self) -> String {
        self.disk.location()
    }
}
