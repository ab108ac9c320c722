import { expect, it } from 'vitest'
import { createRouter } from './router.ts'

const TOOLS: Record<string, [name: string, description: string][]> = {
  weather: [
    [
      'current_weather',
      'Returns the current weather conditions of a city: temperature, wind, humidity and cloud cover.'
    ],
    [
      'weather_forecast',
      'Returns the weather forecast of a city for up to ten days, with temperature and precipitation.'
    ]
  ],
  files: [
    ['read_file', 'Read the complete contents of a file from the file system, with its encoding detected.'],
    ['search_files', 'Search recursively for files and folders that match a pattern, below a starting folder.']
  ],
  github: [
    ['list_issues', 'List the issues of a GitHub repository, with filtering by state, label and assignee.'],
    ['search_code', 'Search for code across GitHub repositories, with qualifiers for language and path.']
  ],
  travel: [
    ['find_flights', 'Find flights between two airports on a date, with prices, airlines and the number of stops.'],
    ['book_hotel', 'Book a hotel room in a city for the given nights, with the number of guests.']
  ]
}

function router() {
  const built = createRouter()
  for (const [server, tools] of Object.entries(TOOLS)) {
    const own = tools.map(([name, description]) => ({ server, name, description }))
    built.setServer(server, own)
  }
  return built
}

it('abstains if the tool has none of the words that the request is about', () => {
  const built = router()
  const requests = [
    ...['scan this file for viruses and malware', 'what are the opening hours of the city library'],
    'convert this file to a podcast'
  ]
  expect(requests.filter((request) => !built.find(request).abstained)).toEqual([])
})

it('does not abstain because no tool knows the names that a request contains', () => {
  const built = router()
  const requests = [
    ...['what is the current weather in Antwerp', 'find flights from Antwerp to Reykjavik for Joanna'],
    ...['book a hotel room in Ouagadougou', 'list the issues of the repository Kubernetes that Torvalds is assigned to']
  ]
  expect(requests.filter((request) => built.find(request).abstained)).toEqual([])
})
