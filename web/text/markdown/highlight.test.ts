import { expect, it } from 'vitest'
import { highlighted } from './highlight.ts'

it.each([
  ['shell', 'echo "hi" # note'],
  ['console', '$ echo hi'],
  ['cpp', 'int main() { return 0; }'],
  ['c++', 'int main() { return 0; }'],
  ['csharp', 'public class A { }'],
  ['php', '<?php echo "hi";'],
  ['ruby', 'def a; "hi"; end'],
  ['kotlin', 'fun main() { }'],
  ['swift', 'func a() { }'],
  ['powershell', 'Get-ChildItem -Path "x"']
])('colours %s', (language, code) => {
  expect(highlighted(code, language)).toContain('<span class="hljs-')
})
