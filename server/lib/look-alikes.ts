/** Letters of other scripts that most fonts draw like Latin ones. Not complete. */
const LETTERS: Record<string, string> = {
  ...pairs('АВЕКМНОРСТХІЈЅУавекморстхіјѕуԁһӏԛԝ', 'abekmhopctxijsyabekmopctxijsydhlqw'),
  ...pairs('ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβεικνορτυχγ', 'abezhikmnoptyxabeikvoptuxy'),
  ...pairs('օոսհցıɑɡ', 'onuhgiag')
}

/** The name in Latin letters that look like its own, without accents, and with one kind of dash. */
export function inPlainLetters(name: string): string {
  const plain = name.replace(/\p{M}/gu, '').replace(/\p{Pd}/gu, '-')
  return [...plain].map((letter) => LETTERS[letter] ?? letter).join('')
}

function pairs(letters: string, latin: string): Record<string, string> {
  return Object.fromEntries([...letters].map((letter, at) => [letter, latin[at] ?? letter]))
}
