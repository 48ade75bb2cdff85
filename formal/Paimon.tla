------------------------------- MODULE Paimon -------------------------------
(***************************************************************************)
(* One Paimon table, whose commit is a few files that come and go one after *)
(* the other; its Java writers, who wait for nobody; and firnline processes *)
(* that expire, are cut anywhere, carry on, give up, undo and purge.        *)
(* Several runs, their order and requests in flight are the affair of       *)
(* Lifecycle.tla.  docs/design/018-paimon-model.md explains this one and    *)
(* names the function behind each action.                                   *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Procs, Nobody,
    Low, Top,          \* the range at the start; below Low a user's tag holds version 1
    HasBranch,         \* a branch with a snapshot of its own, number 2
    Stale,             \* what the hint LATEST says at the start: 0 for what is true
    Broken,            \* rules and assumptions that do not hold
    Kinds,             \* what Java's users do (see Deeds)
    Writes, Deeds, Marks, Undos, Faults    \* how often each may happen

Rules == {
    "record",       \* the run's record names all that a commit puts and takes before it is sent
    "begun",        \* the commit is noted as begun before anything moves, and who finds it begun carries it on
    "fits",         \* the folder is read again, and must be what the commit was made from
    "lease",        \* nothing is sent by a process whose lease ran out
    "tagfirst",     \* what stays below the range has its tag before its snapshot goes
    "tagwhole",     \* no tag of ours is put on what the writers' expiry took meanwhile
    "lowest",       \* snapshots go from the lowest up
    "highest",      \* and come back from the highest down
    "exact",        \* only the very file that the record holds is removed
    "stays",        \* before each removal the snapshot that the range begins with must be there ...
    "same",         \* ... and be the same one
    "overtaken",    \* an expiry of the writers that went further is told from a rollback
    "hintlast",     \* EARLIEST follows the range and never runs ahead of it
    "hintbefore",   \* ... not where snapshots come back below it either
    "hintlook",     \* the range is looked at once more after that
    "hintback",     \* a commit that is given up leaves EARLIEST at what is the first
    "latest",       \* LATEST is put right before the first snapshot goes ...
    "latestloop",   \* ... looked at after each write of it ...
    "latestend",    \* ... and once more when all is gone
    "rolledback",   \* a commit that is given up puts nothing above what a rollback made the newest ...
    "below",        \* ... nor beside what is there: a rollback may be in the middle of it
    "anew",         \* who carries a commit on looks for holds and readers that came since
    "whole",        \* a snapshot comes back only if its own list is there
    "ourtags",      \* a tag of ours stays where it is all that holds a version
    "chosen",       \* an undo that is given up leaves what a rollback went to ...
    "unlook",       \* ... which it looks for before each snapshot that it takes out ...
    "readon",       \* ... and what a reader began with ...
    "retag",        \* ... and first puts back the tags of ours that it had taken away
    "putwhole",     \* an undo brings back a snapshot only if its own list is there
    "gap",          \* an undo is refused if the range moved on
    "undocheck",    \* an undo sees every file that it brings back
    "emptied",      \* no purge while a rollback left the branch without any snapshot
    "rewalk",       \* a purge looks at all roots again before each file
    "freshdecide" } \* each try expires what was planned and is still to go

Assumptions == {
    "grace",          \* grace outlasts what Java's users had begun before the commit
    "takewindow",     \* nobody rolls back to a snapshot in the moment in which it goes, or comes back
    "readerwindow",   \* no reader begins on a snapshot while a living process takes it out
    "expirewindow",   \* no writer expires while a commit is given up or undone
    "tagwindow",      \* nobody rolls back to a tag, or fast-forwards, while a commit is given up or undone
    "hintwindow" }    \* no rollback lasts from the write of LATEST to the end of the commit

ASSUME Broken \subseteq Rules \cup Assumptions
ASSUME Kinds \subseteq {"rollback", "totag", "forward", "expire", "tag", "reader", "hold"}

On(rule) == rule \notin Broken

VARIABLES
    ver,       \* ver[v] = number and files of version v; never changes once written
    dir,       \* the snapshot folder: number -> version, 0 for none
    tags,      \* versions that users' tags hold
    own,       \* versions that tags of firnline's hold
    branch,    \* the version that the branch has, 0 for none
    hint,      \* what EARLIEST and LATEST say
    mark,      \* a reader's next number (0: none), and whether a hold is on the table
    op,        \* what a Java user is in the middle of
    rec,       \* the record of the run
    notes,     \* tries that are begun, done, given up
    me,        \* what each process has in memory
    holder,    \* whose the lease is
    gone,      \* files that firnline deleted
    lost,      \* files that Java deleted, and lists
    left,      \* how much of each budget is left
    ghost      \* newest: what users made the newest; out: versions that users took out, or that lay below one that
               \* their expiry took, and so cannot come back; promised: what a reader must find; returned: what firnline put back

table == <<ver, dir, tags, own, branch, hint>>
vars == <<ver, dir, tags, own, branch, hint, mark, op, rec, notes, me, holder, gone, lost, left, ghost>>

Numbers == 1..(Top + Writes)
Min(S) == CHOOSE x \in S : \A y \in S : x <= y
Max(S) == CHOOSE x \in S : \A y \in S : x >= y
Num(v) == ver[v].num
FilesOf(versions) == UNION {ver[v].files : v \in versions}
There == {n \in Numbers : dir[n] # 0}
InDir == {dir[n] : n \in There}
Roots == InDir \cup tags \cup own \cup (IF branch = 0 THEN {} ELSE {branch})
Versions == DOMAIN ver
List(v) == 100 + v    \* the list that only version v has: the writers' expiry deletes it with the files
Bare(v) == List(v) \in lost

NoTry == [id |-> 0, undo |-> FALSE, exp |-> {}, takes |-> {}, tags |-> {}, first |-> 0, firstv |-> 0,
          hints |-> FALSE, was |-> 0, held |-> FALSE]
Off == [at |-> "off", try |-> NoTry, todo |-> {}, gone |-> {}, ahead |-> FALSE, val |-> 0, base |-> <<>>]
Idle == [at |-> "none", to |-> 0, from |-> 0, back |-> 0, late |-> FALSE]
Blank == [st |-> "planned", planned |-> {}, victims |-> {}, handled |-> {}, try |-> NoTry, undo |-> NoTry, tries |-> 0]

First(v) == [num |-> v, files |-> IF v = 1 THEN {1} ELSE {v - 1, v}]
Init ==
    /\ ver = [v \in 1..Top |-> First(v)] \o (IF HasBranch THEN <<[num |-> 2, files |-> {1, 9}]>> ELSE <<>>)
    /\ dir = [n \in Numbers |-> IF n \in Low..Top THEN n ELSE 0]
    /\ tags = IF Low > 1 THEN {1} ELSE {}
    /\ own = {}
    /\ branch = IF HasBranch THEN Top + 1 ELSE 0
    /\ hint = [first |-> Low, last |-> IF Stale = 0 THEN Top ELSE Stale]
    /\ mark = [reader |-> 0, hold |-> FALSE]
    /\ op = Idle
    /\ rec = [Blank EXCEPT !.st = "none"]
    /\ notes = [begun |-> {}, done |-> {}, given |-> {}]
    /\ me = [p \in Procs |-> Off]
    /\ holder = Nobody
    /\ gone = {} /\ lost = {}
    /\ left = [write |-> Writes, deed |-> Deeds, mark |-> Marks, undo |-> Undos, fault |-> Faults]
    /\ ghost = [newest |-> Top, out |-> {v \in 1..Top : v < Low} \ tags, promised |-> {}, returned |-> {}]

Spend(what) == left[what] > 0 /\ left' = [left EXCEPT ![what] = @ - 1]

-----------------------------------------------------------------------------
(* What Java makes of the hints *)

Believed == IF hint.last # 0 /\ ~(hint.last + 1 \in There) THEN hint.last ELSE Max(There \cup {0})
Beginning == IF hint.first \in There THEN hint.first ELSE Min(There)

-----------------------------------------------------------------------------
(* The lease: with it, one process at a time does anything at all *)

May(p) == On("lease") => holder = p
Release(p) == holder' = IF holder = p THEN Nobody ELSE holder
Ends(p) == me' = [me EXCEPT ![p] = Off] /\ Release(p)
Goes(p, at) == me' = [me EXCEPT ![p].at = at] /\ UNCHANGED holder
Again(p) == me' = [me EXCEPT ![p] = [Off EXCEPT !.at = "on"]] /\ UNCHANGED holder
Ended == {"done", "undone", "cancelled"}

Acquire(p) ==
    /\ me[p].at = "off" /\ holder = Nobody
    /\ rec.st \notin Ended \cup {"none"}
    /\ me' = [me EXCEPT ![p] = [Off EXCEPT !.at = "on"]]
    /\ holder' = p
    /\ UNCHANGED <<table, mark, op, rec, notes, gone, lost, left, ghost>>

Waits(p) ==      \* nothing can be done now: a hold, or grace
    /\ me[p].at = "on" /\ Ends(p)
    /\ UNCHANGED <<table, mark, op, rec, notes, gone, lost, left, ghost>>

Crash(p) ==      \* or a process that sleeps until its lease ran out: it finds that out when it wakes
    /\ me[p].at # "off" /\ holder = p /\ Spend("fault")
    /\ holder' = Nobody
    /\ me' = IF On("lease") THEN [me EXCEPT ![p] = Off] ELSE me
    /\ UNCHANGED <<table, mark, op, rec, notes, gone, lost, ghost>>

-----------------------------------------------------------------------------
(* Plan, and a try of the commit *)

Expirable ==
    {v \in InDir \ tags : Num(v) < Max(There) /\ (mark.reader # 0 => Num(v) < mark.reader)}

Plan ==          \* any policy: some of what nothing needs
    /\ rec.st = "none" /\ There # {}
    /\ \E snaps \in SUBSET Expirable \ {{}} :
        rec' = [Blank EXCEPT !.planned = snaps, !.victims = FilesOf(snaps) \ FilesOf(Roots \ snaps)]
    /\ UNCHANGED <<table, mark, op, notes, me, holder, gone, lost, left, ghost>>

TryOf(snaps) ==
    LET first == 1 + Max({Num(v) : v \in snaps})
        takes == {v \in InDir : Num(v) < first}
    IN [id |-> rec.tries + 1, undo |-> FALSE, exp |-> snaps, takes |-> takes, tags |-> takes \ (snaps \cup tags),
        first |-> first, firstv |-> dir[first], hints |-> hint.last # Max(There), was |-> hint.first,
        held |-> mark.hold]

Hollow(t) == On("tagwhole") /\ \E v \in t.tags : Bare(v)    \* _refuse_bare, of a commit

Begun(t) == t.id \in notes.begun /\ t.id \notin notes.done \cup notes.given
Landed(t) == t.id \in notes.done \/ (t.id # 0 /\ t.exp \cap (InDir \cup tags \cup own) = {} /\ ~Begun(t))
MustBeAnew(t) == On("anew") /\
    (mark.hold # t.held \/ (~t.undo /\ mark.reader # 0 /\ mark.reader <= Max({0} \cup {Num(v) : v \in t.takes})))
Carry(t) ==      \* the state of a process that begins to carry a try out
    [Off EXCEPT !.at = IF t.undo THEN "looktoput" ELSE IF On("tagfirst") THEN "tags" ELSE "latest",
                !.try = t, !.todo = t.takes]

CommitLoad(p) ==
    /\ me[p].at = "on" /\ May(p) /\ rec.st \in {"planned", "committing"}
    /\ LET t == rec.try
           snaps == rec.planned \cap (IF On("freshdecide") THEN Expirable ELSE InDir)
       IN CASE Begun(t) ->
                /\ me' = [me EXCEPT ![p] = IF MustBeAnew(t) THEN [Carry(t) EXCEPT !.at = "giveup"] ELSE Carry(t)]
                /\ UNCHANGED <<rec, holder>>
            [] ~Begun(t) /\ Landed(t) -> rec' = [rec EXCEPT !.st = "committed"] /\ Ends(p)
            [] ~Begun(t) /\ ~Landed(t) /\ mark.hold -> FALSE      \* refused: Waits
            [] ~Begun(t) /\ ~Landed(t) /\ ~mark.hold /\ snaps = {} -> rec' = [rec EXCEPT !.st = "cancelled"] /\ Ends(p)
            [] ~Begun(t) /\ ~Landed(t) /\ ~mark.hold /\ snaps # {} /\ Hollow(TryOf(snaps)) -> FALSE    \* refused as well
            [] OTHER ->
                LET new == TryOf(snaps)
                IN /\ rec' = [rec EXCEPT !.tries = @ + 1, !.st = IF On("record") THEN "committing" ELSE @,
                                         !.try = IF On("record") THEN new ELSE @]
                   /\ me' = [me EXCEPT ![p] = [Off EXCEPT !.at = "begin", !.try = new,
                                                          !.base = <<dir, tags, branch, mark>>]]
                   /\ UNCHANGED holder
    /\ UNCHANGED <<table, mark, op, notes, gone, lost, left, ghost>>

Fits(base) ==
    /\ tags = base[2] /\ branch = base[3] /\ mark = base[4]
    /\ \A n \in Numbers : dir[n] = base[1][n] \/ (base[1][n] = 0 /\ \A m \in Numbers : base[1][m] # 0 => m < n)

NoTagOp == On("tagwindow") => ~(op.at = "rollback" /\ op.back # 0)
NoExpiry == On("expirewindow") => op.at # "expire"
Begin(p) ==
    /\ me[p].at = "begin" /\ May(p) /\ (me[p].try.undo => NoTagOp /\ NoExpiry)
    /\ IF On("fits") => Fits(me[p].base)
       THEN /\ notes' = IF On("begun") THEN [notes EXCEPT !.begun = @ \cup {me[p].try.id}] ELSE notes
            /\ me' = [me EXCEPT ![p] = Carry(me[p].try)]
            /\ UNCHANGED holder
       ELSE Again(p) /\ UNCHANGED notes
    /\ UNCHANGED <<table, mark, op, rec, gone, lost, left, ghost>>

-----------------------------------------------------------------------------
(* Carrying it out *)

PutTag(p) ==
    /\ me[p].at = "tags" /\ May(p)
    /\ LET missing == me[p].try.tags \ own
       IN IF missing = {}
          THEN Goes(p, IF On("tagfirst") THEN "latest" ELSE "done") /\ UNCHANGED own
          ELSE IF On("tagwhole") /\ Bare(Min(missing))
          THEN Goes(p, "giveup") /\ UNCHANGED own
          ELSE own' = own \cup {Min(missing)} /\ UNCHANGED <<me, holder>>
    /\ UNCHANGED <<ver, dir, tags, branch, hint, mark, op, rec, notes, gone, lost, left, ghost>>

Settled(t) == On("hintwindow") /\ t.hints => op.at # "rollback"
ReadLatest(p) ==
    /\ me[p].at = "latest" /\ May(p)
    /\ me[p].todo = {} => Settled(me[p].try)
    /\ IF ~me[p].try.hints \/ ~On("latest") \/ There = {} \/ hint.last = Max(There)
       THEN Goes(p, "look")
       ELSE me' = [me EXCEPT ![p].at = "latestput", ![p].val = Max(There)] /\ UNCHANGED holder
    /\ UNCHANGED <<table, mark, op, rec, notes, gone, lost, left, ghost>>
PutLatest(p) ==
    /\ me[p].at = "latestput" /\ May(p)
    /\ hint' = [hint EXCEPT !.last = me[p].val]
    /\ me' = [me EXCEPT ![p].at = IF On("latestloop") THEN "latest" ELSE "look", ![p].val = 0]
    /\ UNCHANGED <<ver, dir, tags, own, branch, mark, op, rec, notes, holder, gone, lost, left, ghost>>

BackTo(o) == IF o.at = "rollback" /\ (o.back = 0 \/ Num(o.back) = o.to) THEN o.to ELSE 0
AfterHint == IF On("tagfirst") THEN "done" ELSE "tags"
IsThere(t) == IF On("same") THEN dir[t.first] = t.firstv ELSE dir[t.first] # 0
Overtaken(t) == On("overtaken") /\ ~t.undo /\ There # {} /\ Min(There) > t.first
Look(p) ==       \* the file that the range begins with
    /\ me[p].at = "look" /\ May(p)
    /\ LET t == me[p].try
           ahead == ~IsThere(t) /\ Overtaken(t)
       IN IF On("stays") /\ ~IsThere(t) /\ ~ahead
          THEN Goes(p, "giveup")
          ELSE /\ On("takewindow") => ~(BackTo(op) \in {Num(v) : v \in me[p].todo})
               /\ me' = [me EXCEPT ![p].at = IF me[p].todo # {} THEN "take" ELSE IF hint.first = t.first \/ ahead THEN AfterHint ELSE "hint",
                                   ![p].ahead = ahead]
               /\ UNCHANGED holder
    /\ UNCHANGED <<table, mark, op, rec, notes, gone, lost, left, ghost>>

Lowest(S) == CHOOSE v \in S : \A w \in S : Num(v) <= Num(w)
Highest(S) == CHOOSE v \in S : \A w \in S : Num(v) >= Num(w)
Take(p) ==
    /\ me[p].at = "take" /\ May(p)
    /\ LET v == IF On("lowest") THEN Lowest(me[p].todo) ELSE Highest(me[p].todo)
           went == IF On("exact") THEN dir[Num(v)] = v ELSE dir[Num(v)] # 0
           todo == me[p].todo \ {v}
       IN /\ dir' = IF went THEN [dir EXCEPT ![Num(v)] = 0] ELSE dir
          /\ me' = [me EXCEPT ![p].todo = todo, ![p].gone = IF went THEN @ \cup {v} ELSE @,
                              ![p].at = IF todo # {} \/ ~On("latestend") THEN "look" ELSE "latest"]
    /\ UNCHANGED <<ver, tags, own, branch, hint, mark, op, rec, notes, holder, gone, lost, left, ghost>>

PutEarliest(p) ==
    /\ me[p].at = "hint" /\ May(p)
    /\ hint' = IF me[p].ahead THEN hint ELSE [hint EXCEPT !.first = me[p].try.first]
    /\ Goes(p, IF On("hintlook") THEN "look" ELSE AfterHint)
    /\ UNCHANGED <<ver, dir, tags, own, branch, mark, op, rec, notes, gone, lost, left, ghost>>
HintAhead(p) ==  \* the mutant: EARLIEST first, then the snapshots
    /\ ~On("hintlast") /\ me[p].at = "latest" /\ hint.first # me[p].try.first
    /\ hint' = [hint EXCEPT !.first = me[p].try.first]
    /\ UNCHANGED <<ver, dir, tags, own, branch, mark, op, rec, notes, me, holder, gone, lost, left, ghost>>

Done(p) ==
    /\ me[p].at = "done" /\ May(p)
    /\ notes' = [notes EXCEPT !.done = @ \cup {me[p].try.id}]
    /\ Goes(p, "recorded")
    /\ UNCHANGED <<table, mark, op, rec, gone, lost, left, ghost>>
Recorded(p) ==
    /\ me[p].at = "recorded" /\ May(p)
    /\ rec' = CASE rec.st \in {"planned", "committing"} /\ ~me[p].try.undo ->
                    [rec EXCEPT !.st = "committed", !.try = me[p].try]
                [] rec.st = "undoing" /\ me[p].try.undo -> [rec EXCEPT !.st = "undone"]
                [] OTHER -> rec
    /\ Ends(p)
    /\ UNCHANGED <<table, mark, op, notes, gone, lost, left, ghost>>

-----------------------------------------------------------------------------
(* Giving up: what was taken comes back, what was put goes *)

Whole(v) == On("whole") => ~Bare(v)
GiveUp(p) ==
    /\ me[p].at = "giveup" /\ May(p) /\ NoTagOp /\ NoExpiry
    /\ LET t == me[p].try
           numbers == IF There # {} THEN There ELSE {Num(v) : v \in me[p].gone}
           away == IF numbers = {} \/ ~On("rolledback") THEN {}
                   ELSE IF On("below") /\ There # {} THEN {v \in t.takes : Num(v) >= Min(There)}
                   ELSE {v \in t.takes : Num(v) > Max(numbers)}
           ahead == Overtaken(t)
       IN me' = [me EXCEPT ![p].at = IF t.undo THEN "retag" ELSE "putback", ![p].ahead = ahead,
                           ![p].todo = IF t.undo THEN {v \in t.tags : There # {} => Num(v) <= Max(There)}
                                       ELSE IF ahead THEN {} ELSE t.takes \ away]
    /\ UNCHANGED <<table, mark, op, rec, notes, holder, gone, lost, left, ghost>>

Lowered(n) == IF On("hintbefore") /\ hint.first > n THEN [hint EXCEPT !.first = n] ELSE hint
PutBack(p) ==
    /\ me[p].at = "putback" /\ May(p)
    /\ IF me[p].todo = {}
       THEN Goes(p, "unhint") /\ UNCHANGED <<dir, hint, ghost>>
       ELSE LET v == IF On("highest") THEN Highest(me[p].todo) ELSE Lowest(me[p].todo)
                n == Num(v)
            IN IF dir[n] = 0 /\ ~Whole(v)
               THEN /\ me' = [me EXCEPT ![p].todo = {}, ![p].ahead = TRUE]    \* nor what is below it: it would leave a hole
                    /\ ghost' = [ghost EXCEPT !.out = @ \cup me[p].todo]
                    /\ UNCHANGED <<dir, hint, holder>>
               ELSE /\ hint' = IF dir[n] = 0 THEN Lowered(n) ELSE hint
                    /\ dir' = IF dir[n] = 0 THEN [dir EXCEPT ![n] = v] ELSE dir
                    /\ ghost' = IF dir[n] = 0 THEN [ghost EXCEPT !.returned = @ \cup ({v} \ Roots)] ELSE ghost
                    /\ me' = [me EXCEPT ![p].todo = @ \ {v}]
                    /\ UNCHANGED holder
    /\ UNCHANGED <<ver, tags, own, branch, mark, op, rec, notes, gone, lost, left>>

AtFirst == IF There = {} THEN hint.first ELSE Min(There)
UnHint(p) ==
    /\ me[p].at = "unhint" /\ May(p) /\ Settled(me[p].try)
    /\ LET t == me[p].try
       IN hint' = [first |-> IF me[p].ahead \/ t.was = t.first THEN hint.first ELSE IF On("hintback") THEN AtFirst ELSE t.was,
                   last |-> IF t.hints /\ There # {} THEN Max(There) ELSE hint.last]
    /\ Goes(p, "untag")
    /\ UNCHANGED <<ver, dir, tags, own, branch, mark, op, rec, notes, gone, lost, left, ghost>>

UnTag(p) ==
    /\ me[p].at = "untag" /\ May(p)
    /\ own' = own \ {v \in me[p].try.tags : me[p].ahead /\ On("ourtags") => Bare(v)}
    /\ Goes(p, "given")
    /\ UNCHANGED <<ver, dir, tags, branch, hint, mark, op, rec, notes, gone, lost, left, ghost>>

Given(p) ==
    /\ me[p].at = "given" /\ May(p)
    /\ notes' = [notes EXCEPT !.given = @ \cup {me[p].try.id}]
    /\ Again(p)
    /\ UNCHANGED <<table, mark, op, rec, gone, lost, left, ghost>>

-----------------------------------------------------------------------------
(* Undo: the same the other way round *)

Moved ==         \* refuse_gap
    LET taken == {Num(v) : v \in rec.try.takes}
    IN There # {} /\ ( \/ \E v \in rec.try.takes : dir[Num(v)] \notin {0, v}
                       \/ taken # {} /\ Max(taken) > Max(There)
                       \/ Min(There) > rec.try.first )
Missing ==       \* _refuse_missing
    LET needed == rec.try.exp \cup (rec.try.takes \ Roots)
    IN FilesOf(needed) \cap (gone \cup lost) # {} \/ \E v \in needed : Bare(v)

UndoOf ==
    [id |-> rec.tries + 1, undo |-> TRUE, exp |-> {}, takes |-> {v \in rec.try.takes : dir[Num(v)] = 0},
     tags |-> own \cap rec.try.tags, first |-> IF There = {} THEN 0 ELSE Min(There),
     firstv |-> IF There = {} THEN 0 ELSE dir[Min(There)], hints |-> TRUE, was |-> hint.first, held |-> mark.hold]
NewFirst(t) == Min({Num(v) : v \in t.takes} \cup (IF t.first = 0 THEN {} ELSE {t.first}))

UndoLoad(p) ==   \* free for a branch that a rollback emptied: nothing else helps it
    /\ me[p].at = "on" /\ May(p) /\ rec.st \in {"committed", "undoing"} /\ NoTagOp /\ NoExpiry
    /\ IF rec.st = "undoing" \/ (There = {} /\ op.at = "none") THEN UNCHANGED left ELSE Spend("undo")
    /\ LET t == rec.undo
           refused == (On("gap") /\ Moved) \/ (On("undocheck") /\ Missing) \/ (On("putwhole") /\ \E v \in UndoOf.takes : Bare(v))
       IN CASE Begun(t) ->
                /\ me' = [me EXCEPT ![p] = IF MustBeAnew(t) THEN [Carry(t) EXCEPT !.at = "giveup"] ELSE Carry(t)]
                /\ UNCHANGED <<rec, holder>>
            [] ~Begun(t) /\ t.id \in notes.done -> rec' = [rec EXCEPT !.st = "undone"] /\ Ends(p)
            [] ~Begun(t) /\ t.id \notin notes.done /\ refused -> rec' = [rec EXCEPT !.st = "committed"] /\ Ends(p)
            [] OTHER ->
                LET new == UndoOf
                IN /\ rec' = [rec EXCEPT !.tries = @ + 1, !.st = "undoing", !.undo = new]
                   /\ me' = [me EXCEPT ![p] = [Off EXCEPT !.at = "begin", !.try = new,
                                                          !.base = <<dir, tags, branch, mark>>]]
                   /\ UNCHANGED holder
    /\ UNCHANGED <<table, mark, op, notes, gone, lost, ghost>>

LookToPut(p) ==
    /\ me[p].at = "looktoput" /\ May(p) /\ NoTagOp /\ NoExpiry
    /\ LET t == me[p].try
       IN Goes(p, IF t.first # 0 /\ ~IsThere(t) THEN "giveup"
                  ELSE IF me[p].todo = {} THEN "undohints" ELSE "put")
    /\ UNCHANGED <<table, mark, op, rec, notes, gone, lost, left, ghost>>
Put(p) ==
    /\ me[p].at = "put" /\ May(p)
    /\ LET v == IF On("highest") THEN Highest(me[p].todo) ELSE Lowest(me[p].todo)
           n == Num(v)
       IN IF dir[n] \notin {0, v} \/ (On("putwhole") /\ Bare(v))
          THEN Goes(p, "giveup") /\ UNCHANGED <<dir, hint, ghost>>
          ELSE /\ hint' = Lowered(n)
               /\ dir' = [dir EXCEPT ![n] = v]
               /\ ghost' = IF dir[n] = 0 THEN [ghost EXCEPT !.returned = @ \cup ({v} \ Roots)] ELSE ghost
               /\ me' = [me EXCEPT ![p].todo = @ \ {v}, ![p].at = "looktoput"]
               /\ UNCHANGED holder
    /\ UNCHANGED <<ver, tags, own, branch, mark, op, rec, notes, gone, lost, left>>
UndoHints(p) ==
    /\ me[p].at = "undohints" /\ May(p) /\ Settled(me[p].try)
    /\ hint' = [first |-> NewFirst(me[p].try), last |-> IF There = {} THEN hint.last ELSE Max(There)]
    /\ Goes(p, "lookatlast")
    /\ UNCHANGED <<ver, dir, tags, own, branch, mark, op, rec, notes, gone, lost, left, ghost>>
LookAtLast(p) == \* before each tag of ours goes, and at the end
    /\ me[p].at = "lookatlast" /\ May(p)
    /\ LET t == me[p].try
       IN Goes(p, IF t.first # 0 /\ ~IsThere(t) THEN "giveup" ELSE IF t.tags \cap own = {} THEN "done" ELSE "undotag")
    /\ UNCHANGED <<table, mark, op, rec, notes, gone, lost, left, ghost>>
UndoTag(p) ==    \* all snapshots are back
    /\ me[p].at = "undotag" /\ May(p)
    /\ own' = own \ (IF me[p].try.tags \cap own = {} THEN {} ELSE {Lowest(me[p].try.tags \cap own)})
    /\ Goes(p, "lookatlast")
    /\ UNCHANGED <<ver, dir, tags, branch, hint, mark, op, rec, notes, gone, lost, left, ghost>>

ReTag(p) ==      \* an undo that is given up puts back the tags of ours first ...
    /\ me[p].at = "retag" /\ May(p)
    /\ IF me[p].todo = {} \/ ~On("retag")
       THEN me' = [me EXCEPT ![p].at = "looktounput", ![p].todo = me[p].try.takes] /\ UNCHANGED own
       ELSE LET v == Lowest(me[p].todo)
            IN /\ own' = IF Bare(v) THEN own ELSE own \cup {v}
               /\ me' = [me EXCEPT ![p].todo = @ \ {v}]
    /\ UNCHANGED <<ver, dir, tags, branch, hint, mark, op, rec, notes, holder, gone, lost, left, ghost>>
LookToUnPut(p) == \* before each, whether a rollback went to what is ours, or a reader began with it; then all above it stays
    /\ me[p].at = "looktounput" /\ May(p)
    /\ LET t == me[p].try
           ours == On("chosen") /\ t.first # 0 /\ There # {} /\ t.takes # {} /\ Max(There) <= Max({Num(v) : v \in t.takes})
           read == On("readon") /\ mark.reader # 0 /\ t.first \in There /\ me[p].todo # {} /\ Num(Lowest(me[p].todo)) >= mark.reader
       IN /\ On("takewindow") /\ On("unlook") /\ ~ours => ~(BackTo(op) \in {Num(v) : v \in me[p].todo})
          /\ me' = [me EXCEPT ![p].at = "unput", ![p].todo = IF ours \/ read THEN {} ELSE @]
    /\ UNCHANGED <<table, mark, op, rec, notes, holder, gone, lost, left, ghost>>
UnPut(p) ==      \* ... and takes out again what it had put
    /\ me[p].at = "unput" /\ May(p) /\ Settled(me[p].try)
    /\ IF me[p].todo = {}
       THEN /\ hint' = [first |-> IF me[p].try.was = NewFirst(me[p].try) THEN hint.first ELSE AtFirst,
                        last |-> IF There = {} THEN hint.last ELSE Max(There)]
            /\ Goes(p, "given") /\ UNCHANGED dir
       ELSE LET v == Lowest(me[p].todo)
            IN /\ dir' = IF dir[Num(v)] = v THEN [dir EXCEPT ![Num(v)] = 0] ELSE dir
               /\ me' = [me EXCEPT ![p].todo = @ \ {v}, ![p].at = IF On("unlook") THEN "looktounput" ELSE @]
               /\ UNCHANGED <<hint, holder>>
    /\ UNCHANGED <<ver, tags, own, branch, mark, op, rec, notes, gone, lost, left, ghost>>

-----------------------------------------------------------------------------
(* Purge *)

StartPurge(p) ==
    /\ me[p].at = "on" /\ May(p) /\ rec.st = "committed" /\ ~mark.hold
    /\ On("grace") => op.at = "none" \/ op.late
    /\ On("emptied") => There # {}
    /\ rec' = [rec EXCEPT !.st = IF rec.victims = {} THEN "done" ELSE "purging"]
    /\ Again(p)
    /\ UNCHANGED <<table, mark, op, notes, gone, lost, left, ghost>>

Pending == rec.victims \ rec.handled
Handled(f) == [rec EXCEPT !.handled = @ \cup {f}, !.st = IF Pending = {f} THEN "done" ELSE @]
Walk(p) ==
    /\ me[p].at = "on" /\ May(p) /\ rec.st = "purging" /\ ~mark.hold
    /\ LET f == Min(Pending)
       IN IF On("rewalk") /\ f \in FilesOf(Roots)
          THEN rec' = Handled(f) /\ Again(p)
          ELSE me' = [me EXCEPT ![p].at = "delete", ![p].val = f] /\ UNCHANGED <<rec, holder>>
    /\ UNCHANGED <<table, mark, op, notes, gone, lost, left, ghost>>
Delete(p) ==
    /\ me[p].at = "delete" /\ May(p)
    /\ gone' = gone \cup {me[p].val}
    /\ rec' = IF rec.st = "purging" THEN Handled(me[p].val) ELSE rec
    /\ Again(p)
    /\ UNCHANGED <<table, mark, op, notes, lost, left, ghost>>

-----------------------------------------------------------------------------
(* Java's writers and users.  A commit is atomic: create if absent.  All else is one file after the other *)

ByJava == UNCHANGED <<rec, notes, me, holder, gone>>
Late == rec.st \in {"committed", "undoing", "purging"} \cup Ended

Write ==         \* appends; where it matters, also rewrites all, or dies before it wrote the hint
    /\ There # {} /\ op.at = "none" /\ dir[Believed] # 0 /\ Believed + 1 \in Numbers /\ Spend("write")
    /\ LET n == Believed + 1
           v == Len(ver) + 1
           old == ver[dir[Believed]].files
       IN /\ dir[n] = 0
          /\ \E need \in {old \cup {v + 10}} \cup (IF "expire" \in Kinds THEN {{v + 10}} ELSE {}) : ver' = Append(ver, [num |-> n, files |-> need])
          /\ dir' = [dir EXCEPT ![n] = v]
          /\ \E said \in {n} \cup (IF Stale = 0 THEN {} ELSE {hint.last}) : hint' = [hint EXCEPT !.last = said]
          /\ ghost' = [ghost EXCEPT !.newest = v]
    /\ ByJava /\ UNCHANGED <<tags, own, branch, mark, op, lost>>

Starts(kind) == kind \in Kinds /\ op.at = "none" /\ There # {} /\ Spend("deed")
InCommit == \E p \in Procs : holder = p /\ me[p].at \in {"tags", "latest", "latestput", "look", "take", "hint"}
InTake(n) == \E p \in Procs : (me[p].at = "take" \/ (me[p].at = "unput" /\ On("unlook"))) /\ n \in {Num(v) : v \in me[p].todo}
InGivingUp == \E p \in Procs : holder = p /\ me[p].at \in {"putback", "retag", "looktounput", "unput", "unhint", "untag", "given"}
InUndo == \E p \in Procs : holder = p /\ me[p].try.undo
Rollback ==      \* looks at its target, writes LATEST, then removes from the newest down to what EARLIEST says
    /\ Starts("rollback")
    /\ \E n \in There \ {Max(There)} :
        /\ On("takewindow") => ~InTake(n)
        /\ op' = [at |-> "rollback", to |-> n, from |-> Beginning, back |-> 0, late |-> Late]
        /\ hint' = [hint EXCEPT !.last = n]
        /\ ghost' = [ghost EXCEPT !.newest = dir[n]]
    /\ ByJava /\ UNCHANGED <<ver, dir, tags, own, branch, mark, lost>>
RollbackToTag ==
    /\ Starts("totag")
    /\ On("tagwindow") => ~InGivingUp /\ ~InUndo
    /\ \E v \in tags \cup own :
        /\ dir[Num(v)] \in {0, v} /\ Num(v) < Max(There)
        /\ On("takewindow") => ~InTake(Num(v))
        /\ op' = [at |-> "rollback", to |-> Num(v), from |-> Beginning, back |-> v, late |-> Late]
        /\ hint' = [hint EXCEPT !.last = Num(v)]
        /\ ghost' = [ghost EXCEPT !.newest = v]
    /\ ByJava /\ UNCHANGED <<ver, dir, tags, own, branch, mark, lost>>
FastForward ==   \* removes all from the branch's first number on, then copies the branch
    /\ Starts("forward") /\ branch # 0
    /\ On("tagwindow") => ~InGivingUp /\ ~InUndo
    /\ op' = [at |-> "rollback", to |-> Num(branch) - 1, from |-> 0, back |-> branch, late |-> Late]
    /\ ghost' = [ghost EXCEPT !.newest = branch]
    /\ ByJava /\ UNCHANGED <<ver, dir, tags, own, branch, hint, mark, lost>>

Doomed == {n \in There : n > op.to /\ n >= op.from}
RollbackStep ==
    /\ op.at = "rollback" /\ Doomed # {}
    /\ On("takewindow") => \A p \in Procs : me[p].at # "put"
    /\ LET n == Max(Doomed)
       IN /\ dir' = [dir EXCEPT ![n] = 0]
          /\ ghost' = [ghost EXCEPT !.out = @ \cup {dir[n]}, !.promised = @ \ {dir[n]}]
    /\ ByJava /\ UNCHANGED <<ver, tags, own, branch, hint, mark, op, lost, left>>
RollbackEnd ==   \* later tags go, ours too; the snapshot of a tag is written if it is not there
    /\ op.at = "rollback" /\ Doomed = {}
    /\ LET to == IF op.back = 0 THEN op.to ELSE Num(op.back)
           later == {v \in tags \cup own : Num(v) > to}
           new == op.back # 0 /\ dir[to] = 0
       IN /\ tags' = tags \ later /\ own' = own \ later
          /\ dir' = IF op.back # 0 THEN [dir EXCEPT ![to] = op.back] ELSE dir
          /\ hint' = [first |-> IF new THEN Min(There \cup {to}) ELSE hint.first,
                      last |-> IF to = op.to THEN hint.last ELSE to]
          /\ ghost' = [ghost EXCEPT !.out = @ \cup later \cup {v \in Versions : Num(v) > op.to}]
    /\ op' = Idle
    /\ ByJava /\ UNCHANGED <<ver, branch, mark, lost, left>>

Expire ==        \* the writers' own: data first, looking at tags and not at branches; then snapshots; then the hint
    /\ Starts("expire") /\ dir[Beginning] # 0
    /\ On("expirewindow") => ~InUndo /\ ~InGivingUp
    /\ \E end \in {n \in There : n > Beginning /\ (mark.reader # 0 => n <= mark.reader)} :
        LET going == {dir[n] : n \in {m \in There : m >= Beginning /\ m < end}}
        IN /\ op' = [at |-> "expire", to |-> end, from |-> Beginning, back |-> 0, late |-> Late]
           /\ lost' = lost \cup (FilesOf(going) \ FilesOf({dir[end]} \cup tags \cup own))
                          \cup {List(v) : v \in going \ (tags \cup own)}
           /\ ghost' = [ghost EXCEPT !.returned = @ \ going]
    /\ ByJava /\ UNCHANGED <<table, mark>>
ExpireStep ==
    /\ op.at = "expire"
    /\ LET due == {n \in There : n >= op.from /\ n < op.to}
       IN IF due = {}
          THEN op' = Idle /\ hint' = [hint EXCEPT !.first = op.to] /\ UNCHANGED <<dir, ghost>>
          ELSE /\ dir' = [dir EXCEPT ![Min(due)] = 0]
               /\ ghost' = [ghost EXCEPT !.out = @ \cup {dir[Min(due)]}]
               /\ UNCHANGED <<op, hint>>
    /\ ByJava /\ UNCHANGED <<ver, tags, own, branch, mark, lost, left>>

TagRead ==       \* reads the snapshot, then writes the tag
    /\ Starts("tag")
    /\ \E v \in InDir : op' = [Idle EXCEPT !.at = "tag", !.back = v, !.late = Late]
    /\ ByJava /\ UNCHANGED <<table, mark, lost, ghost>>
TagWrite ==
    /\ op.at = "tag" /\ op' = Idle /\ tags' = tags \cup {op.back}
    /\ ByJava /\ UNCHANGED <<ver, dir, own, branch, hint, mark, lost, left, ghost>>

Reader ==        \* begins to read at a snapshot that is there, and wants all from there on
    /\ "reader" \in Kinds /\ mark.reader = 0 /\ op.at = "none"
    /\ On("readerwindow") => ~InCommit /\ \A p \in Procs : me[p].at \notin {"looktounput", "unput"}
    /\ \E n \in There :
        /\ Spend("mark")
        /\ mark' = [mark EXCEPT !.reader = n]
        /\ ghost' = [ghost EXCEPT !.promised = {dir[m] : m \in {k \in There : k >= n}}]
    /\ ByJava /\ UNCHANGED <<table, op, lost>>
Hold ==
    /\ "hold" \in Kinds /\ ~mark.hold /\ ~InCommit /\ Spend("mark")
    /\ mark' = [mark EXCEPT !.hold = TRUE]
    /\ ByJava /\ UNCHANGED <<table, op, lost, ghost>>
HoldEnds ==
    /\ mark.hold /\ mark' = [mark EXCEPT !.hold = FALSE]
    /\ ByJava /\ UNCHANGED <<table, op, lost, left, ghost>>

-----------------------------------------------------------------------------
Firnline == \E p \in Procs :
    \/ Acquire(p) \/ Waits(p) \/ Crash(p)
    \/ CommitLoad(p) \/ Begin(p)
    \/ PutTag(p) \/ ReadLatest(p) \/ PutLatest(p) \/ Look(p) \/ Take(p)
    \/ PutEarliest(p) \/ HintAhead(p) \/ Done(p) \/ Recorded(p)
    \/ GiveUp(p) \/ PutBack(p) \/ UnHint(p) \/ UnTag(p) \/ Given(p)
    \/ UndoLoad(p) \/ LookToPut(p) \/ Put(p) \/ UndoHints(p) \/ LookAtLast(p) \/ UndoTag(p) \/ ReTag(p) \/ LookToUnPut(p) \/ UnPut(p)
    \/ StartPurge(p) \/ Walk(p) \/ Delete(p)
Java ==
    \/ Write \/ Rollback \/ RollbackToTag \/ FastForward \/ RollbackStep \/ RollbackEnd
    \/ Expire \/ ExpireStep \/ TagRead \/ TagWrite \/ Reader \/ Hold \/ HoldEnds
Rest == rec.st \in Ended \cup {"none"} /\ op.at = "none" /\ UNCHANGED vars

Next == Plan \/ Firnline \/ Java \/ Rest
Spec == Init /\ [][Next]_vars
Symmetry == Permutations(Procs)

-----------------------------------------------------------------------------
(* Never *)

NoLiveFileLost ==    \* a file that a snapshot, a tag, a branch or a tag of ours needs is never deleted
    FilesOf(Roots) \cap gone = {}
Unbroken ==          \* readers find every number between the first and the last
    There # {} => There = Min(There)..Max(There)
Accounted ==         \* every version is held by something, or in the record, or was taken out by a user
    Versions \subseteq Roots \cup ghost.out
        \cup (IF rec.st \in {"committing", "committed", "undoing", "purging", "done"} THEN rec.try.exp \cup rec.undo.exp ELSE {})
NewestStays ==       \* what users made the newest is the newest
    op.at \in {"none", "tag"} => There # {} /\ dir[Max(There)] = ghost.newest
Recoverable ==       \* where a rollback left nothing, all that the run took out is there, and can come back
    op.at \in {"none", "tag"} /\ There = {} => gone = {} /\ rec.st \in {"planned", "committing", "committed", "undoing"}
Mending == \E t \in {rec.try, rec.undo} : Begun(t) /\ t.hints
JavaFindsNewest ==   \* at every moment; if users roll back meanwhile, when the commit is over that mends a hint
    op.at \in {"none", "tag"} /\ There # {} /\ (left.deed = Deeds \/ ~Mending) => Believed = Max(There)
HintNotAhead ==      \* where Java believes EARLIEST, nothing is below it; as above
    op.at \in {"none", "tag"} /\ hint.first \in There /\ (left.deed = Deeds \/ ~(Begun(rec.try) \/ Begun(rec.undo)))
        => hint.first = Min(There)
ReadersServed ==     \* what a reader may count on is there, but for what users took out
    ghost.promised \subseteq InDir
BroughtBackWhole ==  \* what firnline put back, and nothing else held, has all its files
    LET back == ghost.returned \cap InDir
    IN FilesOf(back) \cap (lost \cup gone) = {} /\ \A v \in back : ~Bare(v)
TagsWhole ==         \* a tag of ours has all its files
    FilesOf(own) \cap lost = {} /\ \A v \in own : ~Bare(v)

-----------------------------------------------------------------------------
(* Reached: each of these must be violated, or the model proves nothing *)

NeverPurged == ~(rec.st = "done" /\ gone # {})
NeverSpared == ~(rec.st = "done" /\ rec.victims \ gone # {})
NeverUndone == rec.st # "undone"
NeverGivenUp == notes.given = {}
NeverTagged == own = {}
NeverRefused == ~(rec.st = "committed" /\ left.undo < Undos)
NeverOvertaken == \A p \in Procs : ~me[p].ahead
NeverEmptied == There # {}
=============================================================================
