import { expect, it } from 'vitest'
import { fileNameFor, languageOf } from './code-names.ts'

it('knows the language of a file by its name', () => {
  const paths = ['src/app.ts', 'Dockerfile', 'a.b/README.MD', 'x', '.env', 'toString']
  expect(paths.map(languageOf)).toEqual(['typescript', 'dockerfile', 'markdown', '', 'ini', ''])
})

it('names the file that a code block becomes', () => {
  const languages = ['python', 'ts', 'Dockerfile', '', 'constructor', '../../etc/passwd', 'shell']
  expect(languages.map(fileNameFor)).toEqual([
    ...['code.py', 'code.ts', 'Dockerfile', 'code.txt', 'code.txt', 'code.txt', 'code.sh']
  ])
})
