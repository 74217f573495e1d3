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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

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
    stage: Arc<Stage>,
}

/// Choices of a schedule, those made and those to come.
#[derive(Default, Debug)]
struct Choices {
    /// Choices to make first; beyond them the first of those there are, or one drawn.
    given: Vec<usize>,
    dice: Option<u64>,
    taken: Vec<Choice>,
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

#[derive(Debug)]
struct Stage(Mutex<State>);

#[derive(Debug)]
struct State {
    is_running: bool,
    actors: Vec<Actor>,
    /// Threads of each actor that wait for its turn.
    waiting: Vec<Vec<Thread>>,
    choices: Choices,
    /// The actor that went on last.
    current: Option<usize>,
    /// Changes and stops that are left.
    left: Bounds,
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
pub fn explore(bounds: Bounds, trial: impl FnMut(&mut Schedule)) -> u64 {
    explore_one_in(1, bounds, trial)
}

/// Runs `trial` as [`explore`] does, but of the schedules that make as many changes and stops as they may one in `n`,
/// and returns how many it ran. Which ones follows from their choices, so they are the same ones each time.
pub fn explore_one_in(n: u64, bounds: Bounds, mut trial: impl FnMut(&mut Schedule)) -> u64 {
    let (mut schedules, mut given) = (0, Some(Vec::new()));
    while let Some(choices) = given {
        let mut schedule = Schedule::new(bounds, choices, None);
        trial(&mut schedule);
        schedules += 1;
        given = schedule.next_choices(|choices| is_drawn(n, bounds, choices));
    }
    schedules
}

/// Draws one in `n` of the lists of choices that use up the bounds, and all others.
fn is_drawn(n: u64, bounds: Bounds, choices: &[Choice]) -> bool {
    let changes = choices.iter().enumerate().filter(|(_, choice)| choice.chosen > 0);
    if changes.clone().count() < bounds.preemptions + bounds.stops {
        return true;
    }
    let mut dice = changes.fold(0, |hash: u64, (place, choice)| {
        (hash ^ (place as u64) << 8 ^ choice.chosen as u64).wrapping_mul(0x0000_0100_0000_01B3)
    });
    draw(&mut dice, usize::try_from(n).unwrap_or(usize::MAX)) == 0
}

/// Runs `trial` under schedules drawn by the seeds 1 to `schedules`.
pub fn explore_at_random(bounds: Bounds, schedules: u64, mut trial: impl FnMut(&mut Schedule)) {
    for seed in 1..=schedules {
        trial(&mut Schedule::new(bounds, Vec::new(), Some(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))));
    }
}

impl Schedule {
    fn new(bounds: Bounds, given: Vec<usize>, dice: Option<u64>) -> Self {
        let choices = Choices { given, dice, taken: Vec::new() };
        let (actors, waiting, calls) = (Vec::new(), Vec::new(), Vec::new());
        let state = State { is_running: false, actors, waiting, choices, current: None, left: bounds, calls };
        Self { stage: Arc::new(Stage(Mutex::new(state))) }
    }

    /// A handle for each of so many actors.
    pub fn handles<const ACTORS: usize>(&self, disk: &SimulatedDisk) -> [Arc<Scheduled>; ACTORS] {
        let mut state = self.stage.lock();
        state.actors = vec![Actor::Running; ACTORS];
        state.waiting = vec![Vec::new(); ACTORS];
        drop(state);
        std::array::from_fn(|actor| {
            Arc::new(Scheduled { disk: disk.another_process(), stage: Arc::clone(&self.stage), actor })
        })
    }

    /// Runs the programs of all actors to their ends, in the order of the handles.
    ///
    /// # Panics
    /// If an actor panics.
    pub fn run<const ACTORS: usize>(&mut self, programs: [Program<'_>; ACTORS]) {
        let stage = &self.stage;
        stage.lock().is_running = true;
        std::thread::scope(|scope| {
            for (actor, act) in programs.into_iter().enumerate() {
                scope.spawn(move || {
                    let _end = EndOfActor { stage, actor };
                    act();
                });
            }
        });
        stage.lock().is_running = false;
    }

    /// The calls of all actors in the order they were made, one a line.
    pub fn story(&self) -> String {
        self.stage.lock().calls.join("\n")
    }

    /// The choices of the next schedule in depth-first order, without those that are not wanted and what begins as
    /// they do.
    fn next_choices(self, is_wanted: impl Fn(&[Choice]) -> bool) -> Option<Vec<usize>> {
        let mut taken = std::mem::take(&mut self.stage.lock().choices.taken);
        loop {
            while taken.pop_if(|choice| choice.chosen + 1 == choice.options).is_some() {}
            taken.last_mut()?.chosen += 1;
            if is_wanted(&taken) {
                return Some(taken.iter().map(|choice| choice.chosen).collect());
            }
        }
    }
}

impl State {
    /// Lets one actor go on, once all wait, are stopped or have ended. Whichever thread comes to that last does it: as
    /// a rule its own actor goes on, and no thread has to wake.
    fn direct(&mut self) {
        while !self.actors.contains(&Actor::Running) {
            let options = options(&self.actors, self.current, self.left);
            let Some(step) = self.choices.choose(&options) else {
                return;
            };
            let (actor, next) = match step {
                Step::GoOn(actor) => {
                    let could_go_on = self.current.is_some_and(|before| self.actors[before] == Actor::Waiting);
                    self.left.preemptions -= usize::from(could_go_on && self.current != Some(actor));
                    self.current = Some(actor);
                    (actor, Actor::Running)
                }
                Step::Stop(actor) => {
                    self.left.stops -= 1;
                    self.calls.push(format!("actor {actor} is stopped"));
                    (actor, Actor::Stopped)
                }
            };
            self.actors[actor] = next;
            for thread in self.waiting[actor].drain(..) {
                thread.unpark();
            }
        }
    }
}

impl Choices {
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the actor may make its call; `false` if it is stopped.
    fn wait_for_turn(&self, actor: usize, call: impl FnOnce() -> String) -> bool {
        let mut state = self.lock();
        if !state.is_running {
            return true;
        }
        if state.actors[actor] == Actor::Running {
            state.actors[actor] = Actor::Waiting;
            state.direct();
        }
        while state.actors[actor] == Actor::Waiting {
            state.waiting[actor].push(std::thread::current());
            drop(state);
            std::thread::park();
            state = self.lock();
        }
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
        let mut state = self.stage.lock();
        state.actors[self.actor] = Actor::Ended;
        state.direct();
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
