/** The name for a secret of this server; with a number if `isTaken` says that another secret has it. */
export function freeSecretName(
  server: string,
  name: string,
  isTaken: (key: string) => boolean
): { key: string; preferred: string } {
  const preferred = `${server}_${name}`
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/^(?![A-Z])/, '_')
  let key = preferred
  for (let number = 2; isTaken(key); number++) key = `${preferred}_${number}`
  return { key, preferred }
}
