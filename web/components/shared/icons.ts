/** Paths on a 24 × 24 grid. */
export const ICONS = {
  menu: 'M4 7h16M4 12h16M4 17h16',
  folder:
    'M3 7.5A2.5 2.5 0 0 1 5.5 5h3.2l2 2.2H18.5A2.5 2.5 0 0 1 21 9.7v7A2.5 2.5 0 0 1 18.5 19.2h-13A2.5 2.5 0 0 1 3 16.7z',
  file: 'M7 3h7l5 5v11a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2zM14 3v5h5',
  plus: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6L6 18',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  down: 'M6 9l6 6 6-6',
  right: 'M9 6l6 6-6 6',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  clip: 'M20 11.5l-8 8a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8l-8.3 8.3a1.7 1.7 0 0 1-2.4-2.4l7.6-7.6',
  upload: 'M12 16V5M7 9.5L12 4.5l5 5M5 20h14',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  edit: 'M5 19l1-4L16 5l3 3L9 18zM14 7l3 3',
  clock: 'M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16zM12 8v4l3 2',
  settings: 'M4 8h7M15 8h5M4 16h3M11 16h9M11 8a2 2 0 1 0 4 0a2 2 0 1 0-4 0M7 16a2 2 0 1 0 4 0a2 2 0 1 0-4 0',
  inbox: 'M4 13l3-8h10l3 8v6H4zM4 13h4.5l1.5 2.5h4l1.5-2.5H20',
  shield: 'M12 3l7 3v5c0 4.5-3 8-7 10-4-2-7-5.5-7-10V6z',
  warning: 'M12 4l9 16H3zM12 10v4M12 17v.1',
  refresh: 'M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5',
  spark: 'M12 4l1.8 5.2L19 11l-5.2 1.8L12 18l-1.8-5.2L5 11l5.2-1.8z',
  server: 'M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01',
  activity: 'M3 12h4l3-8 4 16 3-8h4',
  back: 'M15 6l-6 6 6 6',
  play: 'M8 5l11 7-11 7z',
  keyboard: 'M3 7h18v10H3zM7 10h.01M11 10h.01M15 10h.01M18 10h.01M8 14h8',
  expand: 'M9 4H4v5M15 4h5v5M9 20H4v-5M15 20h5v-5',
  search: 'M11 4a7 7 0 1 1 0 14a7 7 0 0 1 0-14zM16 16l4.5 4.5',
  pin: 'M9 4h6l-1 6 3 3H7l3-3zM12 13v7',
  archive: 'M4 5h16v4H4zM6 9v10h12V9M10 13h4',
  dots: 'M6 12h.01M12 12h.01M18 12h.01'
} as const

export type IconName = keyof typeof ICONS
