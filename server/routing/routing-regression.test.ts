/** Requests that never use a tool's own name, over a small set of tools like that of everyday servers. */
import { describe, expect, it } from 'vitest'
import { createRouter } from './router.ts'
import { AT_ONCE } from './usage/usage-memory.ts'

const CATALOGUE: Record<string, Record<string, string>> = {
  disk: {
    read_document: 'Return the complete contents of a file as text',
    save_document: 'Write a new file or overwrite an existing one',
    find_documents: 'Recursively search for files that match a pattern',
    make_folder: 'Create a new directory, with its parents',
    document_info: 'Retrieve metadata of a file: size, modification time, permissions'
  },
  vcs: {
    vcs_status: 'Shows the working tree status',
    vcs_history: 'Shows the commit logs',
    vcs_diff: 'Shows differences between branches or commits',
    vcs_commit: 'Records changes to the repository',
    vcs_new_branch: 'Creates a new branch from an optional base branch'
  },
  ledger: {
    run_select: 'Execute a SELECT query on the SQL database',
    run_change: 'Execute an INSERT, UPDATE or DELETE query on the SQL database',
    list_tables: 'List all tables in the SQL database',
    describe_table: 'Get the schema information of a table'
  },
  web: { fetch: 'Fetches a URL from the internet and extracts its contents as markdown' },
  clock: {
    current_time: 'Get the current time in a timezone',
    convert_time: 'Convert a time between timezones'
  },
  post: {
    send_email: 'Send an email with subject, body and attachments',
    search_inbox: 'Search messages in the inbox by sender, subject or date'
  }
}

const CASES: [request: string, right: string][] = [
  ['Show me the text inside a document on disk', 'disk/read_document'],
  ['Store this text as a brand-new file', 'disk/save_document'],
  ['Locate all files whose name ends in .log', 'disk/find_documents'],
  ['Add a directory for the photos', 'disk/make_folder'],
  ['How big is this file and when was it modified?', 'disk/document_info'],
  ['Which past commits does this repo have?', 'vcs/vcs_history'],
  ['Compare two branches and show how they differ', 'vcs/vcs_diff'],
  ['Start another branch off the current one', 'vcs/vcs_new_branch'],
  ['Pull the matching rows out of my db with a select', 'ledger/run_select'],
  ['Remove old records from the database', 'ledger/run_change'],
  ['Which columns does a given table have? Its schema, please', 'ledger/describe_table'],
  ['Show every table of the database', 'ledger/list_tables'],
  ['Download a web page and give me its content', 'web/fetch'],
  ['What time is it in Tokyo right now?', 'clock/current_time'],
  ['Translate 3 pm Berlin time into another timezone', 'clock/convert_time'],
  ['Mail the report to my boss', 'post/send_email'],
  ['Look up the messages from Anna in my mail', 'post/search_inbox']
]

function router() {
  const built = createRouter({ schedule: AT_ONCE })
  for (const [server, tools] of Object.entries(CATALOGUE)) {
    built.setServer(
      server,
      Object.entries(tools).map(([name, description]) => ({ server, name, description }))
    )
  }
  return built
}

describe('a small set of tools', () => {
  const answers = CASES.map(([request, right]) => {
    const { matches, abstained } = router().find(request)
    const found = matches.map(({ server, tool }) => `${server}/${tool}`)
    return { request, right, found, abstained }
  })

  it('the first answer is right for at least four in five', () => {
    const wrong = answers.filter(({ right, found }) => found[0] !== right)
    expect(wrong.length / CASES.length, JSON.stringify(wrong, null, 1)).toBeLessThanOrEqual(0.2)
  })

  it.each(answers)('$request: $right is among the first five', ({ right, found }) => {
    expect(found).toContain(right)
  })

  it('at least four in five are answered', () => {
    expect(answers.filter(({ abstained }) => !abstained).length / CASES.length).toBeGreaterThanOrEqual(0.8)
  })
})
