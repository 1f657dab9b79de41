package profiles

var ownCases = []sshCase{}
