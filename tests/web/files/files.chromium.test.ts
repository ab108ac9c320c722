/** The files of the workspace in the page: its tree, its previews, and what a person changes. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { WorkspacePage } from '../workspace-page.ts'

const now = useFakePage()

const text = (content: string) => Buffer.from(content)
const dialog = ({ page }: WorkspacePage) => page.getByRole('dialog')

async function arrive(files: Record<string, string | Buffer>) {
  for (const [path, content] of Object.entries(files)) now().fake.files.set(path, Buffer.from(content))
  const { me, session } = await now().arrive()
  await me.button('Show the files').click()
  return { me, session }
}
async function open(me: WorkspacePage, name: RegExp) {
  await me.button(name).click()
  await dialog(me).waitFor()
}
const content = (path: string) => now().fake.files.get(path)?.toString()

// Seen before: all folders were open, and everything after 500 rows was hidden.
it('shows folders closed, reads each when it is opened, and hides nothing in a large one', async () => {
  const many = Object.fromEntries(Array.from({ length: 450 }, (_, at) => [`node_modules/p${at}/index.js`, 'x']))
  const { me } = await arrive({ ...many, 'src/a.ts': 'a', 'z.txt': 'z' })
  const asked: string[] = []
  me.page.on('request', (request) => request.url().includes('/files?') && asked.push(new URL(request.url()).search))
  const tree = me.page.getByRole('list', { name: 'Files of the workspace' })
  await me.button(/^z\.txt/).waitFor()
  await expect.poll(() => tree.getByRole('listitem').count()).toBe(3)
  // The request for the workspace itself may have been noticed after the click that led to it.
  asked.length = 0
  await me.button(/^node_modules/).click()
  await me.button('Show more: 250 files are left').click()
  await me.button('Show more: 50 files are left').click()
  await me.button(/^p449/).waitFor()
  expect(asked).toEqual(['?path=node_modules'])
  await me.page.keyboard.press('ArrowDown')
  await me.button(/^node_modules/).focus()
  await me.page.keyboard.press('ArrowLeft')
  await expect.poll(() => tree.getByRole('listitem').count()).toBe(3)
  await me.page.keyboard.press('ArrowDown')
  await me.page.keyboard.press('ArrowRight')
  await me.button(/^a\.ts/).waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
})

const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30" onload="parent.hit=1"><script>parent.hit=1;top.hit=1</script><image href="http://example.org/x.png"/><rect width="40" height="30" fill="red"/></svg>`
const NOTEBOOK = JSON.stringify({
  metadata: { language_info: { name: 'python' } },
  cells: [
    { cell_type: 'markdown', source: ['# A notebook\n'] },
    {
      cell_type: 'code',
      execution_count: 7,
      source: 'def f(): pass',
      outputs: [
        { output_type: 'stream', text: 'printed' },
        { output_type: 'display_data', data: { 'text/html': '<img src=x onerror="hit=1">', 'text/plain': 'a frame' } },
        { output_type: 'display_data', data: { 'image/svg+xml': PICTURE } }
      ]
    }
  ]
})

it('shows Markdown, tables, pictures, notebooks, PDFs and text with colours, and runs nothing of them', async () => {
  const { me } = await arrive({
    'a.md': '# Hello\n\n- [x] done\n\n<img src=x onerror="hit=1">',
    'b.csv': 'name,amount\n"a, b",12\n\u202eevil,3\n',
    'c.svg': PICTURE,
    'd.ipynb': NOTEBOOK,
    'e.pdf': '%PDF-1.4\n<< /Type /Pages /Count 3 >>',
    'f.ts': 'const a = "\u200b"\n',
    'g.bin': Buffer.from([1, 0, 2])
  })
  const closed = async () => {
    await me.page.keyboard.press('Escape')
    await dialog(me).waitFor({ state: 'hidden' })
  }
  await open(me, /^a\.md/)
  await dialog(me).getByRole('heading', { name: 'Hello' }).waitFor()
  await me.button('Source').click()
  await dialog(me).getByText('# Hello').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  await closed()
  await open(me, /^b\.csv/)
  await dialog(me).getByRole('cell', { name: 'a, b' }).waitFor()
  await dialog(me).getByRole('cell', { name: 'U+202E' }).waitFor()
  await expect.poll(() => dialog(me).getByRole('columnheader', { name: 'amount' }).count()).toBe(1)
  expect(await seriousFaults(me.page)).toEqual([])
  await closed()
  await open(me, /^c\.svg/)
  const width = 'document.querySelector("dialog img[alt=\'c.svg\']")?.naturalWidth'
  await expect.poll(() => me.page.evaluate(width)).toBe(40)
  await closed()
  await open(me, /^d\.ipynb/)
  await dialog(me).getByRole('heading', { name: 'A notebook' }).waitFor()
  await dialog(me).getByText('In [7]').waitFor()
  await dialog(me).getByText('printed').waitFor()
  await dialog(me).getByText('a frame').waitFor()
  await dialog(me).getByRole('img', { name: 'Output of this cell' }).waitFor()
  await closed()
  await open(me, /^e\.pdf/)
  await dialog(me).getByText('PDF, 3 pages').waitFor()
  await closed()
  await open(me, /^f\.ts/)
  await dialog(me).locator('.hljs-keyword').waitFor()
  await dialog(me).getByText('U+200B').waitFor()
  await closed()
  await open(me, /^g\.bin/)
  await dialog(me).getByText('This is a binary file').waitFor()
  expect(await me.page.evaluate('globalThis.hit')).toBeUndefined()
  expect(await me.page.locator('iframe, object, embed, dialog svg script').count()).toBe(0)
  expect(now().offences).toEqual([])
})

// Checked: at a `blob:` address, the script runs in a new tab with the origin of the page.
it('gives no picture an address at which its script would run with our origin', async () => {
  const script = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>document.documentElement.setAttribute('data-origin', origin)</script></svg>`
  const { me } = await arrive({ 'c.svg': script })
  await open(me, /^c\.svg/)
  const image = dialog(me).getByRole('img', { name: 'c.svg' })
  await image.waitFor()
  // The same as “Open image in new tab”.
  const tab = await me.page.context().newPage()
  await tab.goto((await image.getAttribute('src')) ?? '')
  const place = 'document.documentElement.getAttribute("data-origin") ?? origin'
  await expect.poll(() => tab.evaluate(place)).toBe('null')
})

it('edits a text file, keeps its encoding and line ends, and keeps what was typed until it is saved', async () => {
  const { me } = await arrive({ 'notes.txt': '\ufeffone\r\ntwo\r\n' })
  await open(me, /^notes\.txt/)
  await me.button('Edit').click()
  const field = me.page.getByRole('textbox', { name: 'Content of notes.txt' })
  await expect.poll(() => field.inputValue()).toBe('one\ntwo\n')
  await expect.poll(() => me.page.evaluate('document.activeElement.tagName')).toBe('TEXTAREA')
  await field.fill('one\nnew\ntwo\n')
  await me.page.keyboard.press('Escape')
  await dialog(me).waitFor({ state: 'hidden' })
  // Seen before: a reload lost it.
  await me.page.reload()
  await open(me, /^notes\.txt\s*unsaved/)
  await expect.poll(() => field.inputValue()).toBe('one\nnew\ntwo\n')
  await me.page.keyboard.press('Control+s')
  await me.page.getByText('Saved “notes.txt”.').waitFor()
  expect(content('notes.txt')).toBe('\ufeffone\r\nnew\r\ntwo\r\n')
  expect(now().offences).toEqual([])
})

it('says that a file changed since it was opened, and offers both versions', async () => {
  const { me } = await arrive({ 'a.txt': 'old\n', 'b.txt': 'old\n' })
  const edit = async (path: string) => {
    await open(me, new RegExp(`^${path}`))
    await me.button('Edit').click()
    await me.page.getByRole('textbox', { name: `Content of ${path}` }).fill('mine\n')
    now().fake.files.set(path, text('theirs\n'))
    await me.button(/^Save$/).click()
    await dialog(me).getByText('This file has changed since you opened it').waitFor()
    expect(content(path)).toBe('theirs\n')
  }
  await edit('a.txt')
  await dialog(me).getByText('Compare').click()
  await dialog(me).getByRole('group', { name: 'Changes to a.txt' }).getByText('theirs').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  await me.button('Replace it with my version').click()
  await expect.poll(() => content('a.txt')).toBe('mine\n')
  await me.page.keyboard.press('Escape')
  await edit('b.txt')
  await me.button('Save mine as a copy').click()
  await expect.poll(() => content('b (mine).txt')).toBe('mine\n')
  await dialog(me).getByText('theirs').waitFor()
  expect(content('b.txt')).toBe('theirs\n')
})

it('makes, renames, moves and deletes files and folders, and asks before it deletes', async () => {
  const { me } = await arrive({ 'src/a.txt': 'a', 'b.txt': 'b' })
  await me.button('New file or folder').click()
  await me.button(/^New folder$/).click()
  const path = me.page.getByRole('textbox', { name: 'Path in the workspace' })
  await path.and(me.page.locator(':focus')).waitFor()
  await me.page.keyboard.type('made')
  await me.page.keyboard.press('Enter')
  await me.button(/^made/).waitFor()
  await me.button('More for made').click()
  await me.button('New file here').click()
  await expect.poll(() => path.inputValue()).toBe('made/')
  await me.page.keyboard.type('new.md')
  await me.page.keyboard.press('Enter')
  await me.page.getByRole('textbox', { name: 'Content of made/new.md' }).fill('# New')
  await me.button(/^Save$/).click()
  await dialog(me).getByRole('heading', { name: 'New', exact: true }).waitFor()
  await expect.poll(() => content('made/new.md')).toBe('# New')
  await me.page.keyboard.press('Escape')
  await dialog(me).waitFor({ state: 'hidden' })
  await me.button(/^b\.txt/).focus()
  await me.page.keyboard.press('F2')
  await path.and(me.page.locator(':focus')).waitFor()
  await me.page.keyboard.type('renamed')
  await me.page.keyboard.press('Enter')
  await me.button(/^renamed\.txt/).waitFor()
  await expect.poll(() => content('renamed.txt')).toBe('b')
  await me.button(/^src/).focus()
  await me.page.keyboard.press('Delete')
  await dialog(me).getByText('“src” is deleted for good').waitFor()
  await dialog(me).getByRole('button', { name: 'Delete' }).and(me.page.locator('[aria-disabled=false]')).click()
  await me.page.getByText('Deleted “src”.').waitFor()
  expect(now().offences).toEqual([])
})

it('uploads six files with one notice, and shows onto which folder files are dropped or moved', async () => {
  const { me } = await arrive({ 'src/a.txt': 'a', 'b.txt': 'b' })
  const six = ['1', '2', '3', '4', '5', '6'].map((name) => ({ name, mimeType: 'text/plain', buffer: text(name) }))
  await me.page.getByLabel('Files to upload').setInputFiles(six)
  await me.page.getByText('Uploaded 6 files.').waitFor()
  await expect.poll(() => me.page.getByText(/^Uploaded/).count()).toBe(1)
  await me.button(/^b\.txt/).hover()
  await me.page.mouse.down()
  await me.button(/^src/).hover()
  await me.button(/^src/).hover()
  await me.page.getByText('Drop to move it to src').waitFor()
  await me.page.mouse.up()
  await expect.poll(() => content('src/b.txt')).toBe('b')
  await me.button(/^b\.txt/).waitFor()
  await me.page.evaluate(`{
    const data = new DataTransfer()
    data.items.add(new File(['dropped'], 'dropped.txt'))
    const row = document.querySelector('[data-folder=src] button')
    for (const type of ['dragover', 'drop'])
      row.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }))
  }`)
  await me.page.getByText('Uploaded “dropped.txt” to src.').waitFor()
  expect(content('src/dropped.txt')).toBe('dropped')
  // Seen before: a file of the same name was replaced without a word.
  const again = ['1', '7'].map((name) => ({ name, mimeType: 'text/plain', buffer: text('again') }))
  await me.page.getByLabel('Files to upload').setInputFiles(again)
  const question = me.page.getByRole('dialog', { name: 'Replace this file?' })
  await question.getByText('“1” is already there.').waitFor()
  await expect.poll(() => content('7')).toBe('again')
  expect(content('1')).toBe('1')
  await question.getByRole('button', { name: 'Replace' }).and(me.page.locator('[aria-disabled=false]')).click()
  await expect.poll(() => content('1')).toBe('again')
  expect(now().offences).toEqual([])
})
