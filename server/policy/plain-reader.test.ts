import { describe, expect, it } from 'vitest'
import type { ServerEntry } from '../catalog/server-entry.ts'
import type { StoredTool } from '../catalog/stored-tools.ts'
import { isPlainReader } from './plain-reader.ts'
import { isReader } from './tool-effects.ts'

const tool = (name: string, description: string, parameters: Record<string, string> = {}): StoredTool => ({
  name,
  description,
  inputSchema: {
    type: 'object',
    properties: Object.fromEntries(Object.entries(parameters).map(([key, text]) => [key, { description: text }]))
  },
  hash: name
})

/** Each of them changes something, and begins like a reader. */
const WRITERS: [name: string, description: string, parameters?: Record<string, string>][] = [
  ['get_or_create_user', 'Get a user by ID or create one.'],
  ['get_next_job', 'Get the next job of the queue.'],
  ['get_job', 'Get a job by ID and lease it for ten minutes.'],
  ['get_rid_of_file', 'Get rid of a file by name.'],
  ['get_new_address', 'Get a wallet address by name.'],
  ['get_ride', 'Get a taxi to the airport.'],
  ['get_share_link', 'Get the share link of a file.'],
  ['get_upload_url', 'Get a presigned URL by name.'],
  ['read_and_clear', 'Read the messages of a mailbox.'],
  ['read_messages', 'Read all messages and mark them as read.'],
  ['read_aloud', 'Read the given text aloud.'],
  ['find_and_replace', 'Find all matches of a text.'],
  ['find_one', 'Find a document and modify it in place.'],
  ['search_replace', 'Search for a text in all files.'],
  ['list_item', 'List an item for sale.'],
  ['list_nft', 'List your token on the market.'],
  ['list_done', 'List all finished tasks, then archive those.'],
  ['list_stale', 'List all stale branches. Deletes the merged ones.'],
  ['list_files', 'List all files, optionally removing empty ones.'],
  ['list_users', 'List all users.', { delete_inactive: 'Whether inactive users go' }],
  ['list_rows', 'List all rows of a table.', { sql: 'The statement' }],
  ['search_index', 'Search for documents.', { rebuild: 'Rebuild the index first' }],
  ['view_mail', 'View a message by ID; tag it as seen.'],
  ['count_vote', 'Count a vote of a user.'],
  ['retrieve_parcel', 'Retrieve the parcel and notify its sender.'],
  ['describe_and_run', 'Describe a workflow by name.'],
  ['mail_list_members', 'List all members and email them a reminder.'],
  ['email_list', 'Get all addresses of a list.'],
  ['get_запись', 'Get all records.'],
  ['get_records', 'Get all records и удалить их.'],
  ['get_records', 'Get all records, dele\u200bting those that are old.'],
  ['listFilesAndPurge', 'List all files of a folder.'],
  ['GET_THEN_SET', 'Get all values of a key.'],
  // No word list contains these; their form reveals them.
  ['list_me', 'List me in the public directory'],
  ['list_item', 'List the item in the shop window'],
  ['list_ship', 'List the ship to port side'],
  ['list_candidates_on_ballot', 'List the candidates on the ballot'],
  ['list_flats', 'List all flats with brokers'],
  ['get_ready', 'Get the factory ready for production'],
  ['get_servers_up', 'Get all servers up'],
  ['get_attention', 'Get the attention of all members'],
  ['get_married', 'Get the couple married'],
  ['get_vaccinated', 'Get all patients vaccinated'],
  ['get_house_clean', 'Get the house clean'],
  ['get_coffee', 'Get a coffee from the machine'],
  ['get_coins', 'Get all coins'],
  ['get_seat', 'Get a seat by ID'],
  ['get_logs', 'Get the logs off the server'],
  ['get_files', 'Get the files to all members'],
  ['get_records', 'Get the records in order'],
  ['get_settings', 'Get the settings of the lamp dimmed'],
  ['get_status', 'Get the status. The lamp blinks.'],
  ['get_queue_item', 'Get the oldest item of the stack'],
  ['find_my_phone', 'Find my phone: it rings loudly'],
  ['find_volunteers', 'Find volunteers: a call goes out to all members'],
  ['find_buyer', 'Find a buyer for the house'],
  ['view_ad', 'View an ad and get one coin'],
  ['view_details', 'View the details and seize goods'],
  ['view_once_message', 'View the message, which then vanishes'],
  ['describe_yourself_publicly', 'Describe yourself in a public post'],
  ['search_premises', 'Search the premises and seize goods'],
  ['search_party', 'Search party: a rescue team goes out'],
  ['retrieve_parcel', 'Retrieve the parcel from the roof'],
  ['read_text', 'Read the text on the speakers'],
  ['count_visit', 'Count a visit of the site'],
  // The name says one thing, the description another.
  ['get_dinner', 'Get the details of an order']
]

describe('a tool that plainly reads', () => {
  // Checked: if the first word of the name decides, these tools pass.
  it('is not one that begins like a reader but does more', () => {
    expect(WRITERS.filter(([name, text, parameters]) => isPlainReader(tool(name, text, parameters)))).toEqual([])
  })

  it('is not one whose name or description says something else, or nothing', () => {
    const unsure: [string, string][] = [
      ['fetch', 'Fetches a page.'],
      ['query', 'Query the database and get all rows.'],
      ['run_report', 'Get all rows of a report.'],
      ['get_data', ''],
      ['get_email', 'Get Email'],
      ['get_state', 'Executes whatever it is given.'],
      ['status', 'Get the status of all services.']
    ]
    expect(unsure.filter(([name, text]) => isPlainReader(tool(name, text)))).toEqual([])
  })

  it('is one that reads and says so', () => {
    const readers: [string, string, Record<string, string>?][] = [
      ['list_tables', 'List all tables in the SQLite database'],
      ['getCustomer', 'Retrieves the details of a customer by ID.', { customerId: 'The ID of the customer' }],
      ['slack_list_channels', 'Lists all channels of a workspace.', { limit: 'Maximum number of channels' }],
      ['search-docs', 'Search the official documentation.', { query: 'What to look for' }],
      ['list_users', 'Get a list of all users'],
      ['get_weather', 'Retrieves the current weather information for a given city.'],
      ['read-note', 'Read the contents of a note'],
      ['get_build_log', 'Get the build log of a specified build of an app'],
      ['read_graph', 'Read the entire knowledge graph.']
    ]
    expect(readers.filter(([name, text, parameters]) => !isPlainReader(tool(name, text, parameters)))).toEqual([])
  })
})

describe('a reader', () => {
  const entry = (readOnly: string[]) => ({ readOnly }) as ServerEntry
  const plain = tool('list_tables', 'List all tables in the database')
  const marked = (annotations: Record<string, unknown>) => ({ ...tool('x', ''), annotations })

  it('is recognized by its wording only if its server annotates nothing', () => {
    expect(isReader(entry([]), [plain, tool('drop', '')], plain)).toBe(true)
    expect(isReader(entry([]), [plain, marked({ title: 'X' })], plain)).toBe(true)
    expect(isReader(entry([]), [plain, marked({ openWorldHint: false })], plain)).toBe(false)
  })

  it('is recognized by its annotation, unless that contradicts itself', () => {
    const isOne = (annotations: Record<string, unknown>) => isReader(entry([]), [], marked(annotations))
    expect(isOne({ readOnlyHint: true })).toBe(true)
    expect(isOne({ readOnlyHint: true, destructiveHint: false })).toBe(true)
    expect(isOne({ readOnlyHint: true, destructiveHint: true })).toBe(false)
    expect(isOne({ readOnlyHint: 'true' })).toBe(false)
    expect(isOne({ idempotentHint: true })).toBe(false)
  })

  it('is recognized by its entry; one that claims to be destructive, only by its full name', () => {
    const destroys = { ...tool('wipe_disk', ''), annotations: { destructiveHint: true } }
    expect(isReader(entry(['dr*']), [], tool('drop', ''))).toBe(true)
    expect(isReader(entry(['wipe']), [], destroys)).toBe(false)
    expect(isReader(entry(['*']), [], destroys)).toBe(false)
    expect(isReader(entry(['wipe_disk']), [], destroys)).toBe(true)
  })
})
