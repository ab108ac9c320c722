import type { Settings } from './settings.ts'

export function quotaLimits(settings: Settings) {
  return {
    ownerFilesMb: settings.MAX_OWNER_FILES_MB,
    filesMb: settings.MAX_FILES_MB,
    sessionLogMb: settings.MAX_SESSION_LOG_MB,
    ownerLogMb: settings.MAX_OWNER_LOG_MB,
    logMb: settings.MAX_LOG_MB,
    sessions: settings.MAX_STORED_SESSIONS
  }
}
