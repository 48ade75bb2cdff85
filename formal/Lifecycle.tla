----------------------------- MODULE Lifecycle -----------------------------
(***************************************************************************)
(* One table, its writers, and two firnline processes that plan, commit,   *)
(* purge and undo runs on it.  Every rule that keeps the table whole has a *)
(* name; a rule named in Broken is switched off, and TLC must then find a  *)
(* violated invariant.  docs/design/006-formal-model.md explains it.       *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Procs, Nobody,       \* firnline processes; the lease's holder when it is free
    NRuns,               \* runs that may be planned in one behaviour
    AgedTag,             \* TRUE: a tag that the policy lets go points at snapshot 1
    Broken,              \* rules and assumptions that do not hold (see Rules)
    Kinds,               \* what a writer may do to branch main (see Edits)
    Writes, Tags, Registers, Transactions, Foreign, Holds, Undos, Faults   \* how often each may happen

Rules == {
    "rewalk",       \* each batch reloads the table and walks what the plan had not walked as kept
    "cas",          \* the commit is a compare-and-swap on the metadata it was built on
    "decide",       \* expire = planned \cap decide(fresh)
    "order",        \* runs purge in commit order
    "roots",        \* snapshots of other undoable runs are roots of a batch ...
    "bothways",     \* ... of runs that committed later, too, not only of those before
    "attempts",     \* ... and of runs whose commit was tried and may have landed
    "readback",     \* a commit that was tried before is read back before the run goes on or is cancelled
    "settle",       \* an interrupted commit or undo is settled before another run commits or is undone
    "lease",        \* nothing is sent after the lease ran out
    "takeover",     \* a lease that ran out can be taken over ...
    "wait",         \* ... by who waits until nothing of the old holder is in flight
    "quiet",        \* a process that got no answer leaves its lease to run out instead of giving it back
    "intent",       \* undo writes that it begins before it touches the table, so no purge can start
    "undocheck",    \* undo sees every file it brings back
    "keeprefs",     \* undo leaves a ref alone that exists again
    "confirm",      \* a hold reads the run again after it was written
    "list",         \* purge deletes from the written list only
    "fullplan",     \* victims of a plan are not reduced by undoable runs: those are spared at purge time
    "oneplan" }     \* no plan is made while another one is open

Assumptions == {
    "grace",          \* grace outlasts every writer transaction that was open at the commit
    "batchwindow",    \* nobody registers old metadata between a batch's reload and its delete
    "undowindow" }    \* no other tool deletes between undo's check and its commit

Edits == {"add", "remove", "again", "cherrypick", "rollback"}

ASSUME Broken \subseteq Rules \cup Assumptions /\ Kinds \subseteq Edits

On(rule) == rule \notin Broken

VARIABLES
    table,     \* current metadata: snapshots, branch main, one tag (0 = none) and whether it is past its age
    files,     \* files[s] = what snapshot s needs; never changes once written
    gone,      \* files deleted from the store, by whomever
    rec,       \* the durable record of each run
    me,        \* what each process has in memory
    flight,    \* a request of each process that was sent and has not arrived
    lease,     \* who holds the table's lease, and whether it ran out
    hold,      \* one hold on a snapshot in grace
    tx,        \* a writer's open transaction: the files it saw, the runs not committed then
    left,      \* how much of each budget is left
    want,      \* ghost: the refs as users last left them, and the snapshots that others took out
    foreign,   \* ghost: files that another tool deleted
    excused    \* ghost: files that were gone already when somebody registered old metadata

vars == <<table, files, gone, rec, me, flight, lease, hold, tx, left, want, foreign, excused>>
world == <<files, gone, hold, tx, want, foreign, excused>>

Runs == 1..NRuns
First == [snaps |-> {1, 2, 3}, main |-> 3, tag |-> IF AgedTag THEN 1 ELSE 0, aged |-> AgedTag]
Unplanned == [st |-> "none", planned |-> {}, kept |-> {}, victims |-> {}, exp |-> {}, tag |-> 0,
              ord |-> 0, handled |-> {}]
Off == [at |-> "off", run |-> 0, goal |-> "", fence |-> First, new |-> First, batch |-> {}]
Awake == [Off EXCEPT !.at = "on"]

Init ==
    /\ table = First
    /\ files = <<{1, 2}, {2, 3}, {3}>>
    /\ gone = {}
    /\ rec = [r \in Runs |-> Unplanned]
    /\ me = [p \in Procs |-> Off]
    /\ flight = [p \in Procs |-> Off]
    /\ lease = [by |-> Nobody, out |-> FALSE]
    /\ hold = [st |-> "none", snap |-> 0]
    /\ tx = [saw |-> {}, since |-> {}]
    /\ left = [write |-> Writes, tag |-> Tags, register |-> Registers, tx |-> Transactions,
               foreign |-> Foreign, hold |-> Holds, undo |-> Undos, fault |-> Faults]
    /\ want = [main |-> 3, tag |-> 0, out |-> {}]
    /\ foreign = {}
    /\ excused = {}

-----------------------------------------------------------------------------
(* What the steps reason with *)

FilesOf(snaps) == UNION {files[s] : s \in snaps}
Min(S) == CHOOSE x \in S : \A y \in S : x <= y
Spend(what) == left[what] > 0 /\ left' = [left EXCEPT ![what] = @ - 1]

Held == IF hold.st \in {"written", "confirmed"} THEN {hold.snap} ELSE {}
Kept(t) == {t.main} \cup Held \cup (IF t.tag # 0 /\ ~t.aged THEN {t.tag} ELSE {})
Expirable(t) == t.snaps \ Kept(t)

Without(t, snaps) ==   \* removing a snapshot removes the refs to it, as metadata builders do
    [t EXCEPT !.snaps = @ \ snaps,
              !.tag = IF @ \in snaps THEN 0 ELSE @,
              !.aged = IF t.tag \in snaps THEN FALSE ELSE @]

Undoable == {r \in Runs : rec[r].st \in {"committed", "undoing"}
                          \/ (rec[r].st = "committing" /\ On("attempts"))}
Settled(r) == On("settle") => \A q \in Runs \ {r} : rec[q].st \notin {"committing", "undoing"}
UndoFrom == IF On("intent") THEN "undoing" ELSE "committed"
Ended == {"done", "undone", "cancelled"}

RootRuns(r) ==   \* the runs whose snapshots protect files from run r's purge
    {q \in Undoable \ {r} : On("roots") /\ (On("bothways") \/ rec[q].ord \in 1..rec[r].ord)}
Live(r) ==       \* what a batch of run r must spare; snapshots walked as kept by the plan share no victim
    LET new == IF On("rewalk") THEN table.snaps ELSE {}
        undo == UNION {rec[q].exp : q \in RootRuns(r)}
    IN FilesOf((new \cup Held \cup undo) \ rec[r].kept)
Pending(r) == rec[r].victims \ rec[r].handled

-----------------------------------------------------------------------------
(* The lease *)

HasLease(p) == lease.by = p /\ ~lease.out
MaySend(p) == On("lease") => HasLease(p)
Freed(p) == IF HasLease(p) THEN [by |-> Nobody, out |-> FALSE] ELSE lease
Finish(p) == me' = [me EXCEPT ![p] = Off] /\ lease' = Freed(p)
Stay(p) == me' = [me EXCEPT ![p] = Awake] /\ UNCHANGED lease

Acquire(p) ==
    /\ me[p].at = "off"
    /\ \E r \in Runs : rec[r].st \notin Ended \cup {"none"}
    /\ \/ lease.by = Nobody
       \/ lease.out /\ On("takeover") /\ (On("wait") => flight[lease.by].at = "off")
    /\ lease' = [by |-> p, out |-> FALSE]
    /\ me' = [me EXCEPT ![p] = Awake]
    /\ UNCHANGED <<world, table, rec, flight, left>>

RunsOut ==   \* a crashed holder's lease always runs out; a live one's does when the process is paused
    /\ lease.by # Nobody /\ ~lease.out
    /\ IF me[lease.by].at = "off" THEN UNCHANGED left ELSE Spend("fault")
    /\ lease' = [lease EXCEPT !.out = TRUE]
    /\ UNCHANGED <<world, table, rec, me, flight>>

Quit(p) ==   \* the process sees that its lease ran out
    /\ me[p].at # "off" /\ ~HasLease(p)
    /\ me' = [me EXCEPT ![p] = Off]
    /\ UNCHANGED <<world, table, rec, flight, lease, left>>

Crash(p) ==  \* memory is lost; the lease and whatever was sent are not
    /\ me[p].at # "off"
    /\ Spend("fault")
    /\ me' = [me EXCEPT ![p] = Off]
    /\ UNCHANGED <<world, table, rec, flight, lease>>

GivesUp(p) ==   \* no answer in time: what was sent may still arrive
    /\ me[p].at = "sent" /\ Spend("fault")
    /\ me' = [me EXCEPT ![p] = Off]
    /\ lease' = IF On("quiet") THEN lease ELSE Freed(p)
    /\ UNCHANGED <<world, table, rec, flight>>

-----------------------------------------------------------------------------
(* Plan and commit *)

Plan(r) ==   \* any policy: some of what no ref needs.  Everything may change between this load and the commit
    /\ rec[r].st = "none"
    /\ r > 1 => rec[r - 1].st # "none"
    /\ On("oneplan") => \A q \in Runs : rec[q].st \notin {"planned", "committing"}
    /\ \E snaps \in SUBSET Expirable(table) \ {{}} :
        LET kept == table.snaps \ snaps
            spared == IF On("fullplan") THEN {} ELSE UNION {rec[q].exp : q \in Undoable}
        IN rec' = [rec EXCEPT ![r] = [Unplanned EXCEPT
                    !.st = "planned", !.planned = snaps, !.kept = kept,
                    !.victims = FilesOf(snaps) \ FilesOf(kept \cup Held \cup spared)]]
    /\ UNCHANGED <<world, table, me, flight, lease, left>>

NextOrder == 1 + Cardinality({q \in Runs : rec[q].ord # 0})
Moved(r, st) == [rec EXCEPT ![r].st = st]
Landed(r) == On("readback") /\ rec[r].st = "committing" /\ rec[r].exp \cap table.snaps = {}

CommitLoad(p, r) ==   \* reload, read back an earlier attempt, decide again, write the intent
    /\ me[p].at = "on" /\ MaySend(p)
    /\ rec[r].st \in {"planned", "committing"} /\ Settled(r)
    /\ LET snaps == rec[r].planned \cap (IF On("decide") THEN Expirable(table) ELSE table.snaps)
       IN CASE Landed(r) -> rec' = Moved(r, "committed") /\ Finish(p)
            [] ~Landed(r) /\ snaps = {} -> rec' = Moved(r, "cancelled") /\ Finish(p)
            [] OTHER ->
                /\ rec' = [rec EXCEPT ![r].st = "committing", ![r].exp = snaps,
                                      ![r].ord = IF @ = 0 THEN NextOrder ELSE @,   \* of the first attempt
                                      ![r].tag = IF table.tag \in snaps THEN table.tag ELSE 0]
                /\ me' = [me EXCEPT ![p] = [at |-> "cas", run |-> r, goal |-> "committed", fence |-> table,
                                            new |-> Without(table, snaps), batch |-> {}]]
                /\ UNCHANGED lease
    /\ UNCHANGED <<world, table, flight, left>>

Send(p) ==   \* a compare-and-swap or a delete leaves the process
    /\ me[p].at \in {"cas", "delete"} /\ MaySend(p)
    /\ flight[p].at = "off"
    /\ flight' = [flight EXCEPT ![p] = me[p]]
    /\ me' = [me EXCEPT ![p].at = "sent"]
    /\ UNCHANGED <<world, table, rec, lease, left>>

Answer(p, at) == me' = IF me[p].at = "sent" THEN [me EXCEPT ![p].at = at] ELSE me

Swap(p) ==   \* the catalog handles a commit; its fence is the content it was built on
    /\ flight[p].at = "cas"
    /\ IF On("cas") => table = flight[p].fence
       THEN /\ table' = flight[p].new
            /\ \/ Answer(p, "won") /\ UNCHANGED left
               \/ me[p].at = "sent" /\ Spend("fault") /\ Answer(p, "on")    \* the answer got lost
       ELSE Answer(p, "on") /\ UNCHANGED <<table, left>>
    /\ flight' = [flight EXCEPT ![p] = Off]
    /\ UNCHANGED <<world, rec, lease>>

SwapRecorded(p) ==
    /\ me[p].at = "won" /\ MaySend(p)
    /\ LET r == me[p].run
           now == <<rec[r].st, me[p].goal>>
       IN rec' = CASE now = <<"committing", "committed">> -> Moved(r, "committed")
                   [] now = <<UndoFrom, "undone">> -> Moved(r, "undone")
                   [] OTHER -> rec          \* put-if-absent: somebody else settled it
    /\ Finish(p)
    /\ UNCHANGED <<world, table, flight, left>>

-----------------------------------------------------------------------------
(* Purge *)

GraceOver(r) == On("grace") => r \notin tx.since

StartPurge(p, r) ==
    /\ me[p].at = "on" /\ MaySend(p)
    /\ rec[r].st = "committed" /\ GraceOver(r)
    /\ On("order") => \A q \in Runs : rec[q].ord # 0 /\ rec[q].ord < rec[r].ord => rec[q].st \in Ended
    /\ rec' = [rec EXCEPT ![r].st = IF rec[r].victims = {} THEN "done" ELSE "purging"]
    /\ Stay(p)
    /\ UNCHANGED <<world, table, flight, left>>

Handled(r, some) ==
    [rec EXCEPT ![r].handled = @ \cup some, ![r].st = IF Pending(r) \subseteq some THEN "done" ELSE @]

Batch(p, r) ==   \* batches of one file: reload, walk what is new, spare or get ready to delete
    /\ me[p].at = "on" /\ MaySend(p)
    /\ rec[r].st = "purging"
    /\ LET f == Min(Pending(r))
           unlisted == FilesOf(rec[r].exp) \ (Live(r) \cup FilesOf(table.snaps))
       IN IF f \in Live(r)
          THEN rec' = Handled(r, {f}) /\ Stay(p)
          ELSE /\ me' = [me EXCEPT ![p] = [Off EXCEPT
                    !.at = "delete", !.run = r, !.batch = {f} \cup (IF On("list") THEN {} ELSE unlisted)]]
               /\ UNCHANGED <<rec, lease>>
    /\ UNCHANGED <<world, table, flight, left>>

Delete(p) ==     \* the store handles a delete
    /\ flight[p].at = "delete"
    /\ gone' = gone \cup flight[p].batch
    /\ Answer(p, "deleted")
    /\ flight' = [flight EXCEPT ![p] = Off]
    /\ UNCHANGED <<files, hold, tx, want, foreign, excused, table, rec, lease, left>>

DeleteRecorded(p) ==
    /\ me[p].at = "deleted" /\ MaySend(p)
    /\ rec' = IF rec[me[p].run].st = "purging" THEN Handled(me[p].run, me[p].batch) ELSE rec
    /\ Stay(p)
    /\ UNCHANGED <<world, table, flight, left>>

-----------------------------------------------------------------------------
(* Undo, and a hold on a snapshot in grace *)

Cancel(p, r) ==   \* undo of a run that is not committed
    /\ me[p].at = "on" /\ MaySend(p)
    /\ rec[r].st \in {"planned", "committing"} /\ ~Landed(r) /\ Settled(r) /\ Spend("undo")
    /\ rec' = Moved(r, "cancelled") /\ Finish(p)
    /\ UNCHANGED <<world, table, flight>>

UndoStart(p, r) ==
    /\ me[p].at = "on" /\ MaySend(p)
    /\ On("intent") /\ rec[r].st = "committed" /\ Settled(r) /\ Spend("undo")
    /\ rec' = Moved(r, "undoing")
    /\ Stay(p)
    /\ UNCHANGED <<world, table, flight>>

Restored(r) ==
    LET back == IF rec[r].tag # 0 /\ (table.tag = 0 \/ ~On("keeprefs")) THEN rec[r].tag ELSE 0
    IN [table EXCEPT !.snaps = @ \cup rec[r].exp,
                     !.tag = IF back # 0 THEN back ELSE @,
                     !.aged = IF back # 0 THEN TRUE ELSE @]

UndoLoad(p, r) ==
    /\ me[p].at = "on" /\ MaySend(p)
    /\ rec[r].st = UndoFrom
    /\ IF On("intent") THEN UNCHANGED left ELSE Spend("undo")
    /\ LET back == rec[r].exp \subseteq table.snaps
           missing == On("undocheck") /\ FilesOf(rec[r].exp) \cap gone # {}
       IN CASE back -> rec' = Moved(r, "undone") /\ Finish(p)
            [] ~back /\ missing -> rec' = Moved(r, "committed") /\ Finish(p)
            [] OTHER ->
                /\ me' = [me EXCEPT ![p] = [at |-> "cas", run |-> r, goal |-> "undone", fence |-> table,
                                            new |-> Restored(r), batch |-> {}]]
                /\ UNCHANGED <<rec, lease>>
    /\ UNCHANGED <<world, table, flight>>

SetHold(h) ==
    /\ hold' = h
    /\ UNCHANGED <<files, gone, tx, want, foreign, excused, table, rec, me, flight, lease>>

HoldLook ==
    /\ hold.st = "none" /\ Spend("hold")
    /\ \E r \in Runs : rec[r].st = "committed"
                       /\ \E s \in rec[r].exp : SetHold([st |-> "looked", snap |-> s])
HoldWrite ==
    /\ hold.st = "looked" /\ UNCHANGED left
    /\ SetHold([hold EXCEPT !.st = IF On("confirm") THEN "written" ELSE "confirmed"])
HoldConfirm ==
    /\ hold.st = "written" /\ UNCHANGED left
    /\ LET late == \E r \in Runs : hold.snap \in rec[r].exp /\ rec[r].st \in {"purging", "done"}
       IN SetHold([hold EXCEPT !.st = IF late THEN "refused" ELSE "confirmed"])

-----------------------------------------------------------------------------
(* Everybody else.  A writer's own commit is atomic: that is its catalog's promise *)

ByUser == UNCHANGED <<gone, rec, me, flight, lease, hold>>

NewSnapshot(kind, need) ==
    /\ kind \in Kinds /\ Spend("write")
    /\ files' = Append(files, need)
    /\ table' = [table EXCEPT !.snaps = @ \cup {Len(files) + 1}, !.main = Len(files) + 1]
    /\ want' = [want EXCEPT !.main = Len(files) + 1]
    /\ ByUser /\ UNCHANGED <<foreign, excused>>

Current == files[table.main]
AddFile == NewSnapshot("add", Current \cup {1 + Cardinality(FilesOf(DOMAIN files))}) /\ UNCHANGED tx
RemoveFile == \E f \in Current : NewSnapshot("remove", Current \ {f}) /\ UNCHANGED tx
AddAgain ==   \* a path may come back if a snapshot in the metadata has it, or an open transaction saw it
    \/ \E f \in FilesOf(table.snaps) \ Current : NewSnapshot("again", Current \cup {f}) /\ UNCHANGED tx
    \/ \E f \in tx.saw \ (Current \cup FilesOf(table.snaps)) :
            NewSnapshot("again", Current \cup {f}) /\ tx' = [saw |-> {}, since |-> {}]
CherryPick == \E s \in table.snaps :
    ~(files[s] \subseteq Current) /\ NewSnapshot("cherrypick", Current \cup files[s]) /\ UNCHANGED tx

SetRefs(t, w) ==
    /\ table' = t /\ want' = w
    /\ ByUser /\ UNCHANGED <<files, tx, foreign, excused>>
RollBack == \E s \in table.snaps \ {table.main} :
    "rollback" \in Kinds /\ Spend("write") /\ SetRefs([table EXCEPT !.main = s], [want EXCEPT !.main = s])
AddTag == \E s \in table.snaps :
    Spend("tag") /\ SetRefs([table EXCEPT !.tag = s, !.aged = FALSE], [want EXCEPT !.tag = s])
RemoveTag ==
    /\ table.tag # 0
    /\ Spend("tag") /\ SetRefs([table EXCEPT !.tag = 0, !.aged = FALSE], [want EXCEPT !.tag = 0])

OpenTx ==
    /\ tx.saw = {} /\ FilesOf(table.snaps) # {} /\ Spend("tx")
    /\ tx' = [saw |-> FilesOf(table.snaps),
              since |-> {r \in Runs : rec[r].st \in {"none", "planned", "committing"}}]
    /\ ByUser /\ UNCHANGED <<files, table, want, foreign, excused>>
CloseTx ==
    /\ tx.saw # {}
    /\ tx' = [saw |-> {}, since |-> {}]
    /\ ByUser /\ UNCHANGED <<files, table, want, foreign, excused, left>>

InBatchWindow == \E p \in Procs :
    lease.by = p /\ "delete" \in {me[p].at, flight[p].at}
Register ==   \* the oldest metadata becomes current again: a restore, a second catalog, a wrong click
    /\ Spend("register")
    /\ On("batchwindow") => ~InBatchWindow
    /\ table' = First
    /\ want' = [main |-> First.main, tag |-> 0, out |-> want.out \cup (table.snaps \ First.snaps)]
    /\ excused' = excused \cup (gone \cap FilesOf(First.snaps))
    /\ ByUser /\ UNCHANGED <<files, tx, foreign>>

InUndoWindow == \E p \in Procs : lease.by = p /\ \E m \in {me[p], flight[p]} :
    m.goal = "undone" /\ m.at \in {"cas", "sent"}
OtherToolDeletes ==   \* it knows the table, not our runs
    /\ On("undowindow") => ~InUndoWindow
    /\ \E f \in FilesOf(DOMAIN files) \ (FilesOf(table.snaps) \cup tx.saw \cup gone) :
        /\ Spend("foreign")
        /\ gone' = gone \cup {f} /\ foreign' = foreign \cup {f}
    /\ UNCHANGED <<files, table, want, tx, excused, rec, me, flight, lease, hold>>
OtherToolExpires ==   \* it too waits for open transactions
    /\ tx.saw = {}
    /\ \E s \in table.snaps \ {table.main, table.tag} :
        Spend("foreign") /\ SetRefs([table EXCEPT !.snaps = @ \ {s}], [want EXCEPT !.out = @ \cup {s}])

-----------------------------------------------------------------------------
Firnline ==
    \/ \E r \in Runs : Plan(r)
    \/ \E p \in Procs : Acquire(p) \/ Quit(p) \/ Crash(p) \/ GivesUp(p)
    \/ \E p \in Procs : Send(p) \/ SwapRecorded(p) \/ DeleteRecorded(p)
    \/ \E p \in Procs, r \in Runs :
        CommitLoad(p, r) \/ Cancel(p, r) \/ StartPurge(p, r) \/ Batch(p, r) \/ UndoStart(p, r) \/ UndoLoad(p, r)
    \/ RunsOut
    \/ HoldLook \/ HoldWrite \/ HoldConfirm
Arrivals == \E p \in Procs : Swap(p) \/ Delete(p)
Others ==
    \/ AddFile \/ RemoveFile \/ AddAgain \/ CherryPick \/ RollBack \/ AddTag \/ RemoveTag
    \/ OpenTx \/ CloseTx \/ Register \/ OtherToolDeletes \/ OtherToolExpires
AllEnded == \A r \in Runs : rec[r].st \in Ended \cup {"none"}
Rest == AllEnded /\ UNCHANGED vars     \* so that TLC's deadlock means: a run that nobody can finish

Next == Firnline \/ Arrivals \/ Others \/ Rest
Spec == Init /\ [][Next]_vars
Symmetry == Permutations(Procs)

-----------------------------------------------------------------------------
(* Never *)

NoLiveFileLost ==   \* every snapshot in the metadata has all its files
    FilesOf(table.snaps) \cap gone \subseteq excused
UndoableIntact ==   \* so has every snapshot that undo may bring back
    \A r \in Runs : rec[r].st \in {"committing", "committed", "undoing"}
        => FilesOf(rec[r].exp) \cap gone \subseteq foreign \cup excused
HeldIntact ==       \* a hold that was confirmed is kept
    hold.st = "confirmed" => files[hold.snap] \cap gone \subseteq foreign \cup excused
OnlyWrittenListDeleted ==
    gone \ foreign \subseteq UNION {rec[r].victims : r \in {q \in Runs : rec[q].st \in {"purging", "done"}}}
NewRefWins ==       \* branch main and a tag that a user set are where that user left them, and resolve
    /\ table.main = want.main /\ table.main \in table.snaps
    /\ want.tag # 0 => table.tag = want.tag /\ ~table.aged
    /\ table.tag \in table.snaps \cup {0}
OrderedPurge ==
    \A r, q \in Runs : rec[r].st \in {"purging", "done"} /\ rec[q].ord # 0 /\ rec[q].ord < rec[r].ord
        => rec[q].st \in Ended
Accounted ==        \* every snapshot that left the table is in the record of a run that may undo or purge it
    DOMAIN files \ (table.snaps \cup want.out)
        \subseteq UNION {rec[r].exp : r \in {q \in Runs : rec[q].st \notin {"planned", "cancelled", "undone"}}}
NoLeak ==           \* when all is done, no file is left that only our expired snapshots needed
    (AllEnded /\ \A p \in Procs : flight[p].at = "off")
        => FilesOf(UNION {rec[r].exp : r \in Runs}) \ FilesOf(table.snaps) \subseteq gone

-----------------------------------------------------------------------------
(* Reached: each of these must be violated, or the model proves nothing *)

NeverPurged == \A r \in Runs : ~(rec[r].st = "done" /\ rec[r].victims \cap gone # {})
NeverSpared == \A r \in Runs :
    ~(rec[r].st = "done" /\ rec[r].victims \ gone # {} /\ rec[r].victims \cap gone # {})
NeverUndone == \A r \in Runs : rec[r].st # "undone"
NeverRefused == ~(\E r \in Runs : rec[r].st = "committed" /\ left.undo < Undos)
NeverHeld == ~(hold.st = "confirmed" /\ \E r \in Runs : rec[r].st = "done" /\ hold.snap \in rec[r].exp
                                                  /\ files[hold.snap] \cap rec[r].victims # {})
NeverTakenOver ==   \* a process woke up in the middle of a batch that another process finished
    ~(\E p \in Procs : me[p].at = "delete" /\ rec[me[p].run].st = "done")
NeverBothDone == ~(\A r \in Runs : rec[r].st = "done" /\ rec[r].victims \cap gone # {})
=============================================================================
