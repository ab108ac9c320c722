/** Bodies of the HTTP API for changes and versions of the workspace. */
import type { ChangedFile, ChangeSummary } from './change-set.ts'

/** The origin of a version of the workspace. `call` is a tool call, `person` an upload or edit, `background` a process that ran on. */
export interface VersionAbout {
  by: 'call' | 'review' | 'person' | 'revert' | 'background'
  callId?: string
  reviewId?: string
  /** The version that was reverted. */
  of?: string
  scope?: 'one' | 'since'
}

export interface Version extends ChangeSummary {
  at: number
  about: VersionAbout
}

/** `GET /api/sessions/:id/changes`: the versions of the workspace, newest first. With `?path=`, only those that changed this file. */
export interface VersionsReply {
  versions: Version[]
  /** Older versions were removed to save space. */
  isThinned: boolean
  /** True if there are versions older than the last one listed; `?before=` with its `changeId` returns them. */
  hasMore: boolean
}

/** `GET /api/sessions/:id/changes/:changeId`: all files of a version, or of a change set that waits for a decision. */
export interface ChangesReply {
  changeId: string
  hash: string
  files: ChangedFile[]
}

/** `GET /api/sessions/:id/changes/:changeId/revert?scope=one|since`: what a revert would do; files changed since then are conflicts. */
export interface RevertPlanReply {
  hash: string
  files: ChangedFile[]
}

/**
 * The content of one side is at `GET /api/sessions/:id/changes/:changeId/content?path=&side=before|after`, always as a download of plain
 * bytes (`application/octet-stream`).
 */
export type ChangeSide = 'before' | 'after'

/** `POST /api/sessions/:id/branch`: a new session with the conversation before the event `before`, and its files. */
export interface BranchRequest {
  before: number
  /** The files as they are now, or as they were at that event. */
  files: 'now' | 'then'
}
