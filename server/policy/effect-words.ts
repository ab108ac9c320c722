/**
 * Words in a tool's name, description or parameters that suggest an effect. Data for `plain-reader.ts`, which derives other forms
 * from these base forms.
 */
import { wordSet } from '../lib/word-set.ts'

/** They suggest an effect wherever they occur. */
export const EFFECT_WORDS =
  wordSet(`abort accept accrue acknowledge acquire activate add adjust allocate amend annotate append apply approve archive
  assign attach authenticate authorize authorise automate auto backfill ban bid blacklist block bookmark boot borrow
  broadcast bump burn buy calibrate cancel capture cast change charge checkout checkin claim clean cleanup clear click
  clone close collapse compile compose configure confirm connect consume control convert copy correct create creation
  crop customize customise cut deactivate debit declare decline decrement decrypt deduct deduplicate defer delegate delete deletion demote
  deny deploy deposit deprecate dequeue deregister destroy destructive detach disable discard disconnect dismiss dispatch donate
  download downgrade drag drain drop dump duplicate edit eject elevate embed emit empty enable encrypt
  enforce enqueue enrich enroll enrol erase escalate establish evict exec execute execution exchange expel expire export
  extend finalize finalise fire fix flash flip flush forget forward freeze fulfill fulfil generate grant halt hide ignite
  impersonate import increment ingest init initialize initialise initiate inject insert insertion install installation instruct
  interact invalidate invite invoke join kick kill launch lease leave lend lift liquidate load lock login logout mail make
  manage mark merge migrate mine mint mirror modify modification mount move mutate mute mutation navigate nominate
  notify notification obtain offload onboard opt overwrite override pair patch pause pay perform permanently persist
  ping pop populate postpone prepare press print proceed produce programmatically promote provision prune publish pull
  purchase purge push put quarantine queue quit raise react reactivate reassign reboot rebase rebuild recalculate receive recharge
  reclaim recompute reconcile reconnect recover recreate recycle redact redeem redeploy redirect redo reduce reenable refresh refund
  regenerate register registration reindex reinstall reinstate reject relaunch relay reload relocate remap remove removal
  rename render renew reopen reorder reorganize repair repeat replace replay replenish replicate reply repost
  reprocess reroute reschedule reserve reset resize resolve respond restart restock restore restrict resubmit
  resume resync retire retry retweet revert revise revoke reward rewrite rollback rollout rotate run sanitize save
  scale scrape scroll scrub seal seed send set settle setup share shift shutdown shut sign signal signup silence
  simulate snooze solve spawn speak spend split spin squash stage stake start stash stop store stub submit subscribe
  suppress suspend swap swipe switch sync synchronize synchronise take tap teardown terminate throttle toggle touch trade train
  transact transcode transcribe transfer transform transition transmit trash trigger trim truncate turn tweak tweet typing
  unarchive unassign unban unblock uncheck undelete undo unfollow unfreeze uninstall unlike unlink unload unlock unmark unmount unmute
  unpause unpin unpublish unregister unset unsnooze unstar unsubscribe untag update upgrade upload upscale upsert use utilize
  vacuum validate verify void wait wake warm whitelist wipe withdraw withdrawal write yank zip unzip
  sql cypher graphql shell bash powershell javascript eval arbitrary command script procedure webhook callback side effect
  overwritten rewritten written wrote sent paid bought sold sell spoken woken taken made kept bid forced
  presigned signed temporary temp onetime otp invitation upsertion dequeued newly automatically permanently
  irreversible irreversibly rid done going deliver loan hail aloud speech highlight animation fake random greet sale
  marketplace auction ql idempotent immediately whenever caches cached caching persists`)

/** They suggest an effect only where they can be verbs: "and tag them", but not "the tags of an image". */
export const AMBIGUOUS_WORDS =
  wordSet(`address adopt advance alert alter alarm answer arrange ask audit award back bill book branch build call cap check close comment commit
  contact contract cover credit cross cue date deal delay design direct document draft draw drive email endorse engage enter escrow
  exit express favorite favourite fetch file fill filter flag follow force fork form format free fund gift group hand hire hold
  host hook index inform insure interest invest issue keep key label learn like limit link log map
  mask master match measure mention message mix model name note number offer open operate order own pack page parse
  park pass pick pin place plan play plug point poll pool position post power preset process profile program project protect query quote rank
  rate rebase record refer release remember remind rent report request rescue return reverse review roll root round route sample
  scan schedule score screen secure select sell serve service ship shop show sink slice sort source spot spread sponsor stamp star step
  stream structure subscription suggest supply support surface survey table tag target task test text tip title top track travel treat
  trust try tune type unite vote walk watch water whisper wire work wrap`)

/** Verbs in a request that order a change. "run", "make" and "open" are left out, because they can also mean to look. */
export const WRITE_ORDERS =
  wordSet(`append archive assign cancel clean cleanup clear close commit create deactivate delete deploy destroy disable disconnect drop edit
  email empty enable erase evict forward grant insert install kill merge modify move mute overwrite patch pay post publish purge
  push reboot rename remove replace reply reset restart restore revoke rollback save send share shred shut shutdown stop store submit
  suspend terminate transfer trash truncate undo uninstall unsubscribe update upgrade upload upsert wipe write add set put insert change`)
