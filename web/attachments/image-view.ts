import { isImage, MAX_IMAGE_BYTES, MAX_IMAGE_SIDE, type StoredFile } from '../../contract/stored-files.ts'

const QUALITY = 0.85

/** Whether models need a smaller version of this image, or one in a format that they take. */
export function needsView(stored: StoredFile, file: Blob): boolean {
  if (!isImage(stored)) return file.type.startsWith('image/')
  const { size, width = 0, height = 0 } = stored
  return size > MAX_IMAGE_BYTES || Math.max(width, height) > MAX_IMAGE_SIDE
}

/** Draws the image as the browser sees it. Returns null if the browser can't show it. */
export async function drawView(file: Blob): Promise<Blob | null> {
  const url = URL.createObjectURL(file)
  try {
    const image = new Image()
    image.src = url
    await image.decode()
    const { naturalWidth, naturalHeight } = image
    const scale = Math.min(1, MAX_IMAGE_SIDE / Math.max(naturalWidth, naturalHeight))
    const canvas = document.createElement('canvas')
    canvas.width = Math.max(1, Math.round(naturalWidth * scale))
    canvas.height = Math.max(1, Math.round(naturalHeight * scale))
    canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height)
    // Photos are smaller as JPEG; drawings and screenshots stay sharp as PNG.
    const png = file.type === 'image/jpeg' ? null : await encoded(canvas, 'image/png')
    return png && png.size <= MAX_IMAGE_BYTES ? png : await encoded(canvas, 'image/jpeg')
  } catch {
    return null
  } finally {
    URL.revokeObjectURL(url)
  }
}

function encoded(canvas: HTMLCanvasElement, type: string): Promise<Blob | null> {
  return new Promise((resolve) => canvas.toBlob(resolve, type, QUALITY))
}
