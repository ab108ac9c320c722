/** Paths relative to the workspace, which is `''`. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
export function inFolder(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`
}
